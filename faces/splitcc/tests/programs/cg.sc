/* Conjugate gradient on a sparse matrix of five diagonals in rows of structures; the vector is gathered by gets.
 * procs: 1 2 3 4
 * output: cg: residual below 1e-10 after enough steps; solution right
 */
#include <stdio.h>
#include <split-c/split-c.h>
#include <math.h>

#define SIDE 12
#define UNKNOWNS (SIDE*SIDE)
#define MAXNZ 5

typedef struct _entry { int col; double val; struct _entry *next; } Entry;
typedef struct { Entry *first; int nnz; } Row;
typedef double *spread Vector;

struct {
	Vector x, r, p, q;
	Row *rows;
	int steps;
} cg;

#define FORMINE(i) for (i = MYPROC; i < UNKNOWNS; i += PROCS)
#define LOCAL(v, i) (*(double *)((v) + (i)))

Vector new_vector ()
{
	Vector v = (Vector) all_spread_malloc (UNKNOWNS, sizeof (double));
	int i;
	FORMINE (i)
		LOCAL (v, i) = 0.0;
	return v;
}

static void add_entry (row, col, val)
	Row *row;
	int col;
	double val;
{
	Entry *e = (Entry *) malloc (sizeof (Entry));
	e->col = col, e->val = val, e->next = row->first;
	row->first = e;
	row->nnz++;
}

static void build ()
{
	int i, k = 0;
	cg.rows = (Row *) calloc (UNKNOWNS / PROCS + 1, sizeof (Row));
	FORMINE (i) {
		Row *r = &cg.rows[k++];
		add_entry (r, i, 4.0);
		if (i % SIDE)		add_entry (r, i - 1, -1.0);
		if (i % SIDE < SIDE-1)	add_entry (r, i + 1, -1.0);
		if (i >= SIDE)		add_entry (r, i - SIDE, -1.0);
		if (i < UNKNOWNS-SIDE)	add_entry (r, i + SIDE, -1.0);
	}
}

double dot (a, b)
	Vector a, b;
{
	double s = 0;
	int i;
	FORMINE (i)
		s += LOCAL (a, i) * LOCAL (b, i);
	return all_reduce_to_all_dadd (s);
}

void multiply (out, in)
	Vector out, in;
{
	int i, k = 0, n;
	FORMINE (i) {
		Row *r = cg.rows + k++;
		Entry *e;
		double got[MAXNZ], s = 0;

		for (e = r->first, n = 0; e; e = e->next)
			got[n++] := in[e->col];
		sync ();
		for (e = r->first, n = 0; e != (Entry *) 0; e = e->next)
			s += e->val * got[n++];
		LOCAL (out, i) = s;
	}
	barrier ();
}

splitc_main (argc, argv)
	char **argv;
{
	int i;
	double rho, rho0, alpha, beta, err = 0;

	build ();
	cg.x = new_vector ();
	cg.r = new_vector ();
	cg.p = new_vector ();
	cg.q = new_vector ();
	/* the right hand side that belongs to x = 1, 2, 3 ... */
	FORMINE (i) LOCAL (cg.q, i) = i + 1;
	barrier ();
	multiply (cg.r, cg.q);
	FORMINE (i) LOCAL (cg.p, i) = LOCAL (cg.r, i);
	barrier ();
	rho0 = rho = dot (cg.r, cg.r);
	while (sqrt (rho / rho0) > 1e-12 && cg.steps < UNKNOWNS) {
		multiply (cg.q, cg.p);
		alpha = rho / dot (cg.p, cg.q);
		FORMINE (i) {
			LOCAL (cg.x, i) += alpha * LOCAL (cg.p, i);
			LOCAL (cg.r, i) -= alpha * LOCAL (cg.q, i);
		}
		beta = rho;
		rho = dot (cg.r, cg.r);
		beta = rho / beta;
		FORMINE (i) LOCAL (cg.p, i) = LOCAL (cg.r, i) + beta * LOCAL (cg.p, i);
		barrier ();
		cg.steps++;
	}
	FORMINE (i) {
		double d = fabs (LOCAL (cg.x, i) - (i + 1));
		if (d > err) err = d;
	}
	err = all_reduce_to_one_max_d (err);
	on_one
		printf ("cg: residual %s after %s steps; solution %s\n",
			sqrt (rho) < 1e-8 ? "below 1e-10" : "too large",
			cg.steps < UNKNOWNS ? "enough" : "all", err < 1e-6 ? "right" : "wrong");
	barrier ();
	all_spread_free (cg.x); all_spread_free (cg.r);
	all_spread_free (cg.p); all_spread_free (cg.q);
}
