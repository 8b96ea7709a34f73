/* All pairs forces: bodies travel around a ring of processors in double buffers by bulk stores.
 * procs: 1 2 3 4
 * output: momentum conserved, forces agree
 */
#include <split-c/split-c.h>
#include <stdio.h>
#include <math.h>
#include <sys/types.h>
#include <sys/times.h>
#include <time.h>
#include <limits.h>
#include <values.h>

#define NB 48
#define MAXPER (NB)
#define DOT(a, b) ((a)[0]*(b)[0] + (a)[1]*(b)[1] + (a)[2]*(b)[2])
#define DO3 for (k = 0; k < 3; ++k)
typedef double vec3[3];
typedef struct { vec3 x, f; double m; int id; } Body;
static Body bufs[2][MAXPER];
Body mine[MAXPER];
int per;

extern double sqrt (), fabs ();
long random ();
struct tms start_times;

static void pull (a, b)
register Body *a; Body *b;
{
	vec3 d; double r2, s; int k;
	if (a->id == b->id) return;
	DO3 d[k] = b->x[k] - a->x[k];
	r2 = DOT (d, d) + 1e-4;
	s = a->m * b->m / (r2 * sqrt (r2));
	DO3 a->f[k] += s * d[k];
}

static init (b, i) Body *b;
{
	int k;
	b->id = i;
	b->m = 1 + i % 3;
	DO3 { b->x[k] = sin ((double) (i * 3 + k) * 1.7); b->f[k] = 0; }
}

splitc_main ()
{
	int first, i, j, k, round, now = 0, n;
	double worst = -MAXDOUBLE, sum[3];
	Body *global out[2];
	clock_t ticks;

	ticks = times (&start_times);
	first = MYPROC * NB / PROCS;
	per = (MYPROC + 1) * NB / PROCS - first;
	for (i = 0; i < per; i++) init (mine + i, first + i);
	for (i = 0; i < 2; i++) out[i] = toglobal ((MYPROC + 1) % PROCS, bufs[i]);
	for (i = 0; i < per; i++) bufs[0][i] = mine[i];
	n = per;
	barrier ();
	for (round = 0; round < PROCS; round++) {
		int from = (MYPROC - round - 1 + PROCS) % PROCS, coming = (from + 1) * NB / PROCS - from * NB / PROCS;
		if (round < PROCS - 1)
			bulk_store (out[!now], bufs[now], n * sizeof (Body));
		for (i = 0; i < per; i++)
			for (j = 0; j < n; j++)
				pull (&mine[i], &bufs[now][j]);
		if (round < PROCS - 1) {
			store_sync (coming * sizeof (Body));
			barrier ();
			now = !now, n = coming;
		}
	}
	DO3 { for (sum[k] = 0, i = 0; i < per; i++) sum[k] += mine[i].f[k]; sum[k] = all_reduce_to_one_dadd (sum[k]); }
	for (i = 0; i < per; i++) {
		Body a, b;
		init (&a, first + i);
		for (j = 0; j < NB; j++) { init (&b, j); pull (&a, &b); }
		DO3 if (fabs (a.f[k] - mine[i].f[k]) > worst) worst = fabs (a.f[k] - mine[i].f[k]);
	}
	worst = all_reduce_to_one_dmax (worst);
	on_one printf ("momentum %s, forces %s\n", fabs (sum[0]) + fabs (sum[1]) + fabs (sum[2]) < 1e-8 ? "conserved" : "lost",
		worst < 1e-9 ? "agree" : "differ");
	if ((long) ticks == LONG_MIN) perror ("times");
	return 0;
}
