/* A benchmark in the manner of the time: rates of operations, in a table, with getrusage and local clocks.
 * procs: 2 4
 * output: op        size  right
 * output: read         8  yes
 * output: write        8  yes
 * output: get          8  yes
 * output: put          8  yes
 * output: store        8  yes
 * output: bulk_read 1024  yes
 * output: bulk_put  1024  yes
 * output: done
 */
#include <stdio.h>
#include <sys/time.h>
#include <sys/resource.h>
#include <signal.h>
#include <split-c/split-c.h>
#include <split-c/control.h>
#include <split-c/bulk.h>

#ifdef  __STDC__
# define P(args) args
# define CAT(a,b) a ## b
#else
# define P(args) ()
# define CAT(a,b) a/**/b
#endif

#define ROUNDS 200
#define SIZE 1024
#define TIME(stmt) (t0 = now(), (stmt), now() - t0)

typedef double (*bench_fn) P((int, double *global));
static double mem[SIZE / 8], local[SIZE / 8];
int caught;

static double now P((void));
static double now()
{
	static struct timeval tv;
	struct rusage ru;
	getrusage(RUSAGE_SELF, &ru);
	gettimeofday(&tv, 0);
	return tv.tv_sec * 1e6 + tv.tv_usec;
}

#define BENCH(name, statement, last) \
static double CAT(bench_,name)(n, gp) int n; double *global gp; \
{ register int i; double t0 = now(); for (i = 0; i < n; i++) { statement; } last; return (now() - t0) / n; }

BENCH(read, local[0] = *gp, ;)
BENCH(write, *gp = local[1], ;)
BENCH(get, local[0] := *gp, sync())
BENCH(put, *gp := local[1], sync())
BENCH(store, *gp :- local[1], ;)
BENCH(bulk_read, bulk_read(local, gp, SIZE), ;)
BENCH(bulk_put, bulk_put(gp, local, SIZE), sync())

static struct bench { char *name; bench_fn fn; int size, stores; } table[] = {
	{ "read", bench_read, 8 }, { "write", bench_write, 8 }, { "get", bench_get, 8 }, { "put", bench_put, 8 },
	{ "store", bench_store, 8, 1 }, { "bulk_read", bench_bulk_read, SIZE }, { "bulk_put", bench_bulk_put, SIZE },
};
#define N_BENCH (sizeof table / sizeof *table)

static void on_signal(sig) { caught = sig; }

splitc_main(argc, argv, envp) char *argv[], *envp[];
{
	struct bench *b; int n = argc > 1 ? atoi(argv[1]) : ROUNDS; double us;

	signal(SIGUSR1, on_signal);
	if (MYPROC == 0) printf("%-9s %4s  %s\n", "op", "size", "right");
	for (b = table; b < &table[N_BENCH]; ++b) {
		int i, right = 1;
		barrier(); /* the reduction holds nobody back: another may still read mem */
		for (i = 0; i < SIZE / 8; i++) mem[i] = i, local[i] = -i;
		barrier();
		if (MYPROC % 2 == 0 && MYPROC + 1 < PROCS) {
			double *global gp = toglobal(MYPROC + 1, mem);
			us = (*b->fn)(n, gp);
			if (us < 0) right = 0;
			if (b->stores == 0 && b->fn != bench_read && b->fn != bench_get && b->fn != bench_bulk_read)
				right &= *gp == local[1] || b->size == SIZE && *(gp + 5) == -5;
			else if (b->size == SIZE) right &= local[127] == 127;
		} else if (b->stores && MYPROC % 2)
			store_sync(n * sizeof(double)), right = mem[0] == local[1];
		right = all_reduce_to_one_min(right);
		on_one printf("%-9s %4d  %s\n", b->name, b->size, right ? "yes" : "no");
	}
	raise(SIGUSR1);
	barrier();
	on_one puts(caught == SIGUSR1 ? "done" : "no signal");
	return 0;
}
