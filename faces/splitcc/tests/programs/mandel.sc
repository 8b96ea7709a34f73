/* The Mandelbrot set: rows are taken by fetch-and-add, results stored to processor 0, compared with a serial run.
 * procs: 1 2 3 4
 * output: 32 rows, all taken once
 * output: P2 48 32, checksum right
 */
#include <stdio.h>
#include <split-c/split-c.h>
#include <split-c/control.h>
#include <split-c/atomic.h>

#define ROWS 32
#define COLS 48
#define LIMIT 200

typedef struct { float re, im; } complex;
typedef unsigned char pixel;

extern double atof ();
static int ticket;
static pixel image[ROWS][COLS], serial_image[ROWS][COLS];
static int done_by[ROWS];
complex lo = { -2.0, -1.2 }, hi = { .8, 1.2 };

static int iterate (c)
     complex c;
{
  register int n;
  register double zr = 0, zi = 0, t;

  for (n = 0; n < LIMIT && zr * zr + zi * zi < 4.0; n++)
    {
      t = zr * zr - zi * zi + c.re;
      zi = 2 * zr * zi + c.im;
      zr = t;
    }
  return n;
}

static void row (y, into)
     int y;
     pixel *into;
{
  int x;
  complex c;

  c.im = lo.im + (hi.im - lo.im) * y / ROWS;
  for (x = 0; x < COLS; x++)
    {
      c.re = lo.re + (hi.re - lo.re) * x / COLS;
      into[x] = (pixel) iterate (c);
    }
}

splitc_main (argc, argv)
     int argc;
     char **argv;
{
  int *global next = toglobal (0, &ticket);
  pixel *global to;
  pixel buffer[COLS];
  int y, x, mine = 0, rows;

  if (argc == 5)
    {
      lo.re = atof (argv[1]), lo.im = atof (argv[2]);
      hi.re = atof (argv[3]), hi.im = atof (argv[4]);
    }
  barrier ();
  while ((y = fetch_and_add (next, 1)) < ROWS)
    {
      row (y, buffer);
      to = toglobal (0, &image[y][0]);
      bulk_store (to, buffer, COLS * sizeof (pixel));
      *toglobal (0, &done_by[y]) :- MYPROC + 1;
      mine++;
    }
  on_one
    store_sync ((long) ROWS * (COLS * sizeof (pixel) + sizeof (int)));
  rows = all_reduce_to_one_add (mine);
  on_one
    {
      int bad = 0, taken = 0;
      for (y = 0; y < ROWS; y++)
        {
          row (y, serial_image[y]);
          for (x = 0; x < COLS; x++)
            bad += image[y][x] != serial_image[y][x];
          taken += done_by[y] >= 1 && done_by[y] <= PROCS;
        }
      printf ("%d rows, %s\n", rows, taken == ROWS ? "all taken once" : "some not taken");
      printf ("P2 %d %d, checksum %s\n", COLS, ROWS, bad ? "wrong" : "right");
    }
  barrier ();
  return 0;
}
