/* Red-black successive over-relaxation on a grid of rows, spread in blocks, with ghost rows.
 * procs: 1 2 3 4
 * output: sor: 34 x 30 converged, same as serial
 */
#include <split-c/split-c.h>
#include <split-c/control.h>
#include <stdio.h>
#include <math.h>
#include <malloc.h>

#define N       34
#define M       30
#define OMEGA   1.7
#define EPSILON 1e-9
#define RED     0
#define BLACK   1

#define FABS(x)  ((x) < 0.0 ? -(x) : (x))
#define ROW(i)   (G + ((i) % rows_per) * M)

/* Blocks of rows; two more rows are copies of the neighbours'. */
double grid[PROCS]::[(N / 1 + 2) * M];
double (*mine)[M];
int first, last, rows;

extern double fabs();

static double sweep(g, lo, hi, base, color)
double (*g)[M];
int lo, hi, base, color;
{
  register int i, j;
  double worst = 0.0;

  for (i = lo; i <= hi; i++) {
    if (base + i == 0 || base + i == N - 1) continue;
    for (j = 1 + ((base + i + 1 + color) & 1); j < M - 1; j += 2) {
      double residual = 0.25 * (g[i-1][j] + g[i+1][j] + g[i][j-1] + g[i][j+1]) - g[i][j];
      g[i][j] += OMEGA * residual;
      if (FABS(residual) > worst) worst = FABS(residual);
    }
  }
  return worst;
}

static void
exchange_rows()
{
  int up = MYPROC - 1, down = MYPROC + 1;

  /* rows are 1 .. rows here; 0 and rows + 1 belong to the neighbours */
  if (up >= 0) {
    int theirs = N / PROCS + (up < N % PROCS);
    double *global from = (double *global)(&grid[up]) ;
    bulk_get(mine[0], from + theirs * M, M * sizeof(double));
  }
  if (down < PROCS) {
    double *global from = (double *global)(&grid[down]);
    bulk_get(mine[rows + 1], from + M, M * sizeof(double));
  }
  sync();
}

double boundary(i, j) { return i == 0 ? 100.0 : j == 0 ? 50.0 * i / (N - 1) : 0; }

static double serial[N][M];

int splitc_main(argc, argv)
int argc;
char *argv[];
{
  int i, j, iteration, bad = 0;
  double worst, serial_worst;
  double t0;

  rows = N / PROCS + (MYPROC < N % PROCS);
  first = MYPROC * (N / PROCS) + (MYPROC < N % PROCS ? MYPROC : N % PROCS);
  mine = (double (*)[M]) tolocal(grid[MYPROC]);
  for (i = 1; i <= rows; i++)
    for (j = 0; j < M; j++)
      mine[i][j] = (first + i - 1) == 0 || first + i - 1 == N - 1 || j == 0 || j == M - 1 ? boundary(first + i - 1, j) : 0;
  barrier();

  t0 = get_seconds();
  for (iteration = 0; iteration < 2000; iteration++) {
    double w1, w2;
    exchange_rows();
    barrier();
    w1 = sweep(mine, 1, rows, first - 1, RED);
    barrier();
    exchange_rows();
    barrier();
    w2 = sweep(mine, 1, rows, first - 1, BLACK);
    worst = all_reduce_to_all_dmax(w1 > w2 ? w1 : w2);
    if (worst < EPSILON) break;
  }
  t0 = get_seconds() - t0;
  barrier();

  on_one {
    for (i = 0; i < N; i++)
      for (j = 0; j < M; j++)
        serial[i][j] = i == 0 || i == N - 1 || j == 0 || j == M - 1 ? boundary(i, j) : 0;
    for (iteration = 0; iteration < 2000; iteration++) {
      double w1 = sweep(serial, 1, N - 2, 0, RED), w2 = sweep(serial, 1, N - 2, 0, BLACK);
      if ((serial_worst = w1 > w2 ? w1 : w2) < EPSILON) break;
    }
    {
      int p, row = 0, r;
      for (p = 0; p < PROCS; p++)
        for (r = 1; r <= N / PROCS + (p < N % PROCS); r++, row++)
          for (j = 0; j < M; j++)
            if (fabs(grid[p][r * M + j] - serial[row][j]) > 1e-12) bad++;
      if (row != N) bad++;
    }
    printf("sor: %d x %d %s, %s serial\n", N, M, worst < EPSILON ? "converged" : "did not converge", bad ? "NOT the same as" : "same as");
    if (t0 < 0) printf("time %f\n", t0);
  }
  barrier();
  return 0;
}
