/* Many forms of one thing, as programs of several authors have them.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

typedef struct list { int v; struct list *spread next; char tag[4]; double d[2]; } list_t;
typedef struct cell { struct cell *global left, *global right; union { int i; float f; } u; short kind; } CELL, *CELLP;
typedef CELL *global GCELL;
list_t L[8]::;
int X[16]::, M[2][PROCS]::[3];
CELL cells[4];
extern int *spread Shared;
int *spread Shared;
volatile int flag;
enum kinds { LEAF = 1, NODE };
static int *global table[2] = { 0, NULL };

int first(CELL *global c) { return c->left ? first(c->left) : c->u.i; }
GCELL down(c, how) GCELL c; int how; { if (how) return c->left; return c->right; }
int at(i, j) { return M[i][j][2]; }
int take(int a, int b, int *global p, register int *global q) { return a * 1000 + b * 100 + *p * 10 + *q; }
int sub(int n, int A[n]::[3]) { return A[n - 1][1]; }
struct pair { int *global p; int n; };
struct pair both(int *global p, int n) { struct pair r; r.p = p; r.n = n; return r; }
static int counter() { static int *global c; static int mine; if (c == NULL) c = &mine; return ++*c; }
double *global pick(double *global a, double *global b, int which) { return which ? a : b; }

int splitc_main(int argc, char **argv)
{
    int i, j, k = 0, t, *lp, *global p, *global q, *global e;
    list_t l, *spread sp = L, *spread sq;
    GCELL c, d;
    CELLP lc = cells;
    struct pair pr;
    char *global s;
    double two[2];

    for_my_1d(i, 8) { l.v = i; l.next = i < 7 ? &L[i + 1] : NULL; strcpy(l.tag, "ab"); l.d[1] = i / 4.0; L[i] = l; }
    for_my_1d(i, 16) X[i] = i;
    for (i = 0; i < 2; i++) for (j = 0; j < 3; j++) M[i][MYPROC][j] = 100 * i + 10 * MYPROC + j;
    for (i = 0; i < 4; i++) { lc[i].left = lc[i].right = NULL; lc[i].u.i = 10 * MYPROC + i; (lc + i)->kind = LEAF; }
    barrier();

    CHECK((sp + 2)->v == 2 && (*(sp + 3)).v == 3 && sp[4].d[1] == 1.0 && (&L[5])->tag[1] == 'b');
    for (sq = sp, t = 0; sq != NULL; sq = sq->next) t += sq->v;
    CHECK(t == 28);
    for (sq = sp, t = 0; (sq = sq->next); ) t++;
    CHECK(t == 7);
    for (i = 0; X[i] != 9; i++) ;
    CHECK(i == 9 && X[X[2] + X[3]] == 5 && X[X[X[4]]] == 4);
    l = L[3];
    CHECK(l.v == 3 && sizeof L[3] == sizeof l && sizeof(L) == 8 * sizeof(list_t));
    bulk_read(&l, &L[6], sizeof(L[6]));
    CHECK(l.v == 6 && !strcmp(l.tag, "ab"));

    c = toglobal(NEXT, cells);
    c->left = c + 1;
    CHECK(first(c) == 10 * NEXT + 1 && down(c, 1) == c + 1 && down(c, 0) == 0);
    barrier();
    if ((d = c->left) != NULL && d->kind == LEAF) d->u.f = 0.5f;
    CHECK(down(c, 1)->u.f == 0.5f && toglobal(NEXT, cells)->left->u.f == 0.5f);
    switch (c->kind) { case LEAF: k = 1; break; case NODE: k = 2; }
    CHECK(k == 1);
    barrier();

    CHECK(at(1, LAST) == 102 + 10 * LAST);
    CHECK(sub(PROCS, M[1]) == 101 + 10 * LAST && sub(PROCS, &M[0][0]) == 1 + 10 * LAST);
    p = M[0][NEXT], q = &M[1][NEXT][1];
    CHECK(take(X[1], X[2], &X[3], &X[4]) == 1234 && *q == 101 + 10 * NEXT);
    for (e = p + 3, t = 0; p != e; p++, t++) CHECK(*p == 10 * NEXT + t);
    CHECK(p[-1] == *(e - 1) && e - p == 0 && *(p - (unsigned)t) == 10 * NEXT);
    p -= X[2] + 1;
    CHECK(p[X[1]] == 10 * NEXT + 1 && 2[p] == 10 * NEXT + 2);

    pr = both(p, 7);
    CHECK(pr.p[2] == 10 * NEXT + 2 && *both(p, 1).p == 10 * NEXT && both(p, 3).n == 3);
    table[0] = p;
    CHECK(*table[0] == *p && table[1] == NULL && (table[1] ? *table[1] : -1) == -1);
    CHECK(counter() == 1 && counter() == 2);
    two[0] = 1.5, two[1] = 2.5;
    CHECK(*pick(two, &two[1], 1) == 1.5 && pick(two, two + 1, 0)[0] == 2.5);

    q = malloc(3 * sizeof(int));
    e = (int *global)malloc(sizeof *e);
    q[2] = 5, *e = q[2]++ + 1;
    lp = (int *)q;
    CHECK(*e == 6 && lp[2] == 6 && tolocal(q)[2] == 6 && ((int *)q)[2] == 6);
    free(lp);
    free((void *)e);
    s = (char *global)toglobal(NEXT, cells) + sizeof(CELL);
    CHECK((GCELL)s == toglobal(NEXT, &cells[1]) && (long)((GCELL)s - toglobal(NEXT, cells)) == 1);

    Shared = (int *spread)all_spread_malloc(PROCS, sizeof(int)) + 0;
    Shared[MYPROC] = MYPROC;
    (void)*p;
    *p;
    barrier();
    CHECK(((int *spread)(void *spread)Shared)[NEXT] == NEXT);
    on_one { volatile int *global f = toglobal(LAST, &flag); *f = 3; }
    if (MYPROC == LAST) { while (!*(volatile int *global)toglobal(LAST, &flag)) ; CHECK(flag == 3); }
again:
    if (k++ < 3) goto again;
    CHECK(k == 4);
    barrier();
    all_spread_free(Shared);
    DONE();
}
