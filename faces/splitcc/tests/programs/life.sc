/* The game of life on a torus, two-dimensional spread array, with macros that make names.
 * procs: 1 2 3 4
 * output: generation 0: 5 cells
 * output: generation 40: 5 cells
 * output: glider at 10 10
 */
#include <stdio.h>
#include <split-c/split-c.h>
#include <split-c/control.h>

#define HEIGHT 16
#define WIDTH  12
#define DECLARE(kind) unsigned char world_##kind[HEIGHT][WIDTH]::
#define WORLD(kind) world_##kind
#define STR(x) #x
#define XSTR(x) STR(x)

DECLARE(now);
DECLARE(next);

#define N(y, x) WORLD(now)[((y) + HEIGHT) % HEIGHT][((x) + WIDTH) % WIDTH]

static char *glider[] = {
	".O.",
	"..O",
	"OOO",
};

void set_up()
{
	int y, x;
	for_my_2D(y, x, HEIGHT, WIDTH)
		WORLD(now)[y][x] = 0;
	barrier();
	on_proc(PROCS - 1) {
		for (y = 0; y < 3; y++)
			for (x = 0; x < 3; x++)
				if (glider[y][x] == 'O') WORLD(now)[y][x] := 1;
		sync();
	}
	barrier();
}

int population()
{
	int y, x, n = 0;
	for_my_2D(y, x, HEIGHT, WIDTH)
		n += WORLD(now)[y][x];
	return all_reduce_to_all_add(n);
}

void step()
{
	int y, x, n, dy, dx;
	for_my_2D(y, x, HEIGHT, WIDTH) {
		unsigned char around[8], mine;
		int k = 0;
		for (dy = -1; dy <= 1; dy++)
			for (dx = -1; dx <= 1; dx++)
				if (dy || dx)
					around[k++] := N(y + dy, x + dx);
		mine = WORLD(now)[y][x];
		sync();
		for (n = 0; k--; )
			n += around[k];
		WORLD(next)[y][x] = n == 3 || (n == 2 && mine);
	}
	barrier();
	for_my_2D(y, x, HEIGHT, WIDTH)
		WORLD(now)[y][x] = WORLD(next)[y][x];
	barrier();
}

splitc_main()
{
	int generation, y, x;

	set_up();
	for (generation = 0; generation <= 40; generation++) {
		int cells = population();
		if (!(generation % 40))
			on_one printf(XSTR(generation) " %d: %d cells\n", generation, cells);
		if (generation < 40) step();
	}
	on_one
		for (y = 0; y < HEIGHT; y++)
			for (x = 0; x < WIDTH; x++)
				if (!N(y, x) && N(y, x + 1) && N(y + 1, x + 2) && N(y + 2, x) && N(y + 2, x + 1) && N(y + 2, x + 2))
					printf("glider at %d %d\n", y, x);
	barrier();
}
