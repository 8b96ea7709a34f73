/* More forms of pointers, arrays and accesses, as several authors wrote them.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"
#define N 4
typedef double row_t[N];
typedef struct rec { int a; struct { int b[3]; } in; int (*f)(); struct rec *spread sp; row_t row; } REC, *global GREC, *spread SREC;
double (*spread A)[N];
int *spread *spread PP;
int *spread ap[3];
int *global *global gg;
SREC recs;
REC one;
int X[PROCS]::;
int Y[8]::[2][3];
int twice(x) { return 2 * x; }
static int sum_param(int a[]::, int n) { int i, s = 0; for (i = 0; i < n; i++) s += a[i]; return s; }
static int sum_old(a, n) int a[PROCS]::; { int i, s = 0; for (i = 0; i < n; i++) s += a[i]; return s; }
int *global nextp(p) int *global p; { return p + 1; }
int count_args(n) { return n; }
splitc_main(argc, argv) char **argv;
{
    int i, j, t, v[4]; GREC g; int *global p, *global q; double d; REC r; int *spread s; char *global cp; void *global vp;
    short *global shp; unsigned char *global up; float *global fp; long n;
    A = all_spread_malloc(2 * PROCS, sizeof(row_t));
    recs = all_spread_malloc(PROCS, sizeof(REC));
    PP = all_spread_malloc(PROCS, sizeof(int *spread));
    for (i = MYPROC; i < 2 * PROCS; i += PROCS) for (j = 0; j < N; j++) A[i][j] = i * 10 + j;
    X[MYPROC] = MYPROC; PP[MYPROC] = &X[MYPROC];
    one.a = 5 + MYPROC; one.f = twice; one.in.b[2] = 9;
    recs[MYPROC] = one;
    recs[MYPROC].sp = recs;
    for (i = 0; i < 2; i++) for (j = 0; j < 3; j++) for_my_1d(t, 8) Y[t][i][j] = t * 100 + i * 10 + j;
    barrier();
    CHECK(A[2 * PROCS - 1][3] == (2 * PROCS - 1) * 10 + 3);
    CHECK(*PP[NEXT] == NEXT && **(PP + LAST) == LAST);
    g = (GREC)(recs + NEXT);
    CHECK(g->in.b[2] == 9 && (*g).in.b[2] == 9 && (&g->in)->b[2] == 9 && *(g->in.b + 2) == 9);
    CHECK((*g->f)(4) == 8 && g->f(3) == 6);
    CHECK(g->sp[LAST].a == 5 + LAST && (g->sp + LAST)->a == 5 + LAST);
    bulk_read(v, Y[7][1], sizeof(int) * 3); CHECK(v[0] == 710 && v[2] == 712);
    p = Y[3][0]; CHECK(*p++ == 300 && *p++ == 301 && *--p == 301 && p[-1] == 300);
    t = *p++ + *p; CHECK(t == 301 + 302);
    p = &Y[5][1][1]; q = p; p += 1; CHECK(p - q == 1 && p > q && p != q && !(p == q) && *p == 512);
    CHECK((p ? *p : 0) == 512 && !p == 0 && (p && q));
    CHECK(sizeof(*g) == sizeof(REC) && sizeof g->row == sizeof(row_t) && sizeof(Y[0]) == 6 * sizeof(int));
    barrier();
    v[0] := X[NEXT], v[1] := X[LAST]; sync(); CHECK(v[0] == NEXT && v[1] == LAST);
    r := *g; sync(); CHECK(r.in.b[2] == 9);
    for (i = 0, p = (int *global)&X[NEXT]; i < 1; v[2] := *p, i++) ; sync(); CHECK(v[2] == NEXT);
    barrier(); if (MYPROC == 0) *(int *global)&X[LAST] := 77; sync(); barrier(); CHECK(X[LAST] == 77); barrier();
    X[MYPROC] = MYPROC; barrier();
    CHECK(sum_param(X, PROCS) == PROCS * (PROCS - 1) / 2 && sum_old(X, PROCS) == PROCS * (PROCS - 1) / 2);
    p = toglobal(NEXT, &one.in.b[1]); CHECK(*nextp(p) == 9 && nextp(p) == toglobal(NEXT, &one.in.b[2]));
    vp = p; cp = (char *global)vp; cp += sizeof(int); CHECK(*(int *global)cp == 9);
    n = (long)p; CHECK((int *global)n == p);
    gg = (int *global *global)toglobal(NEXT, &gg);
    ap[0] = X; ap[1] = &X[LAST]; CHECK(ap[1][0] == LAST && *(ap[0] + LAST) == LAST && *ap[1]-- == LAST);
    { int *global arr[PROCS]; for (i = 0; i < PROCS; i++) arr[i] = (int *global)(X + i); for (t = 0, i = 0; i < PROCS; i++) t += *arr[i]; CHECK(t == PROCS * (PROCS - 1) / 2); }
    { static struct { char c; int *global p; } st[2]; st[1].p = (int *global)&X[LAST]; CHECK(*st[1].p == LAST); }
    shp = (short *global)toglobal(NEXT, &one.a); up = (unsigned char *global)shp;
    CHECK(*shp == 5 + NEXT && *up == 5 + NEXT);
    CHECK((X[NEXT] == NEXT ? X[LAST] : X[0]) == LAST);
    CHECK(count_args(X[LAST], X[0], *p) == LAST);
    switch (X[LAST]) { case 0: CHECK(PROCS == 1); break; default: CHECK(PROCS > 1); }
    while (X[LAST] != LAST) ; do t = X[0]; while (t);
    CHECK(-X[LAST] == -LAST && ~X[0] == -1 && !X[0] && (X[LAST] << 1) == 2 * LAST && (char)X[LAST] == LAST);
    d = X[LAST]; CHECK(d == LAST); d = A[1][2] * A[0][1]; CHECK(d == 12.0 * 1);
    barrier();
    if (MYPROC == 0) { A[1][2] += 2; A[1][2]++; ++A[1][2]; A[1][2] *= 2; A[1][2] -= A[0][1]; } barrier();
    CHECK(A[1][2] == (12 + 4) * 2 - 1);
    on_one t = 1; else t = 2;
    CHECK(t == (MYPROC ? 2 : 1));
    on_proc(LAST) { t = 3; }
    s = X; s += 2; s -= 1; CHECK(s - X == 1 && toproc(s) == 1 % PROCS); s++; --s; CHECK(s == &X[1]);
    CHECK(toproc(&X[PROCS - 1]) == LAST && tolocal(&X[MYPROC]) == (int *)(X + MYPROC));
    CHECK(&A[1][2] == (double *global)(A + 1) + 2);
    { double *row = (double *)A[MYPROC], *row2 = tolocal(A[MYPROC]), (*row3)[N] = (double (*)[N])(A + MYPROC); CHECK(row == row2 && *row3 == row && (*row3)[1] == MYPROC * 10 + 1); }
    { double (*spread B)[N] = A + 1; CHECK(B[0][0] == 10 && (*B)[1] == 11); }
    { register double *spread z = (double *spread)A; CHECK(*z == 0.0); }
    barrier();
    all_spread_free(A); all_spread_free((void *spread)recs); all_spread_free(PP);
    DONE();
}
