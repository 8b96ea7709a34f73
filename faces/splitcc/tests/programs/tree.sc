/* Barnes-Hut in two dimensions: bodies are spread, cells are linked by global pointers, with unions and type tags.
 * procs: 1 2 3 4
 * output: tree of 90 bodies: mass 4095.0
 * output: forces agree with all pairs within 2 %
 */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <split-c/split-c.h>
#include <split-c/control.h>

#define BODY 01
#define CELL 02
#define NDIM 2
#define NSUB (1 << NDIM)
#define NBODY 90
#define THETA 0.3
#define SQR(x) ((x)*(x))

typedef double real, vector[NDIM];

/* what bodies and cells have in common comes first */
typedef struct node {
    short type;
    real mass;
    vector pos;
} node, *global nodeptr;

#define Type(x) (((nodeptr)(x))->type)
#define Mass(x) (((nodeptr)(x))->mass)
#define Pos(x)  (((nodeptr)(x))->pos)

typedef struct body {
    short type;
    real mass;
    vector pos;
    vector acc;
    struct body *next;
} body, *bodyptr;

typedef struct cell {
    short type;
    real mass;
    vector pos;
    union {
        nodeptr sub[NSUB];
        struct cell *link;
    } u;
} cell, *cellptr;

typedef cell *global gcellptr;

static gcellptr ctab;                   /* free list, here */
static cellptr freecells;
nodeptr *spread roots;
body *spread bodies;
static int ncells;
real rsize = 4.0, eps = 0.05;

static cellptr makecell()
{
    cellptr c;
    int i;

    if (freecells != NULL) {
        c = freecells;
        freecells = c->u.link;
    } else
        c = (cellptr)malloc(sizeof(cell));
    ncells++;
    c->type = CELL;
    c->mass = 0.0;
    for (i = 0; i < NSUB; i++)
        c->u.sub[i] = NULL;
    return (c);
}

static int subindex(p, mid)
    vector p, mid;
{
    int i = 0, k;

    for (k = 0; k < NDIM; k++)
        if (p[k] >= mid[k]) i |= 1 << k;
    return i;
}

static void loadtree(root, b, mid, size)
    cellptr root; bodyptr b; vector mid; real size;
{
    vector m;
    int i, k;
    nodeptr sub;

    i = subindex(b->pos, mid);
    size /= 2;
    for (k = 0; k < NDIM; k++)
        m[k] = mid[k] + ((i >> k & 1) ? size / 2 : -size / 2);
    sub = root->u.sub[i];
    if (sub == NULL)
        root->u.sub[i] = (nodeptr)b;
    else if (Type(sub) == CELL)
        loadtree((cellptr)tolocal(sub), b, m, size);
    else {
        cellptr c = makecell();
        root->u.sub[i] = (nodeptr)c;
        loadtree(c, (bodyptr)tolocal(sub), m, size);
        loadtree(c, b, m, size);
    }
}

/* Trees of two processors grow together: what is the second's is hung into the first. */
static nodeptr merge(a, b, mid, size)
    nodeptr a, b; vector mid; real size;
{
    int i, k;
    vector m;
    cellptr c;

    if (a == NULL) return b;
    if (b == NULL) return a;
    c = makecell();
    size /= 2;
    if (Type(a) == CELL && Type(b) == CELL) {
        for (i = 0; i < NSUB; i++) {
            for (k = 0; k < NDIM; k++)
                m[k] = mid[k] + ((i >> k & 1) ? size / 2 : -size / 2);
            c->u.sub[i] = merge(((gcellptr)a)->u.sub[i], ((gcellptr)b)->u.sub[i], m, size);
        }
    } else if (Type(a) == BODY && Type(b) == BODY) {
        vector pa, pb;
        int ia, ib;

        for (k = 0; k < NDIM; k++) pa[k] = Pos(a)[k], pb[k] = Pos(b)[k];
        ia = subindex(pa, mid), ib = subindex(pb, mid);
        if (ia != ib) {
            c->u.sub[ia] = a;
            c->u.sub[ib] = b;
        } else {
            for (k = 0; k < NDIM; k++)
                m[k] = mid[k] + ((ia >> k & 1) ? size / 2 : -size / 2);
            c->u.sub[ia] = merge(a, b, m, size);
        }
    } else {
        nodeptr t;
        vector p;

        if (Type(a) == BODY) t = a, a = b, b = t;       /* a is the cell */
        for (i = 0; i < NSUB; i++)
            c->u.sub[i] = ((gcellptr)a)->u.sub[i];
        for (k = 0; k < NDIM; k++) p[k] = Pos(b)[k];
        i = subindex(p, mid);
        for (k = 0; k < NDIM; k++)
            m[k] = mid[k] + ((i >> k & 1) ? size / 2 : -size / 2);
        c->u.sub[i] = merge(c->u.sub[i], b, m, size);
    }
    return (nodeptr)c;
}

static real hackcofm(q)
    nodeptr q;
{
    gcellptr c = (gcellptr)q;
    vector cm;
    real total = 0;
    int i, k;

    if (Type(q) == BODY)
        return Mass(q);
    for (k = 0; k < NDIM; k++) cm[k] = 0.0;
    for (i = 0; i < NSUB; i++) {
        nodeptr s = c->u.sub[i];
        if (s != NULL) {
            real m = hackcofm(s);
            total += m;
            for (k = 0; k < NDIM; k++) cm[k] += m * s->pos[k];
        }
    }
    c->mass := total;
    for (k = 0; k < NDIM; k++) c->pos[k] := cm[k] / total;
    sync();
    return total;
}

static void gravsub(b, mass, pos)
    bodyptr b; real mass; real *pos;
{
    real dr[NDIM], d2 = SQR(eps), f;
    int k;

    for (k = 0; k < NDIM; k++) dr[k] = pos[k] - b->pos[k], d2 += SQR(dr[k]);
    f = mass / (d2 * sqrt(d2));
    for (k = 0; k < NDIM; k++) b->acc[k] += f * dr[k];
}

static void walk(b, q, size)
    bodyptr b; nodeptr q; real size;
{
    node n;
    int i;

    if (q == (nodeptr)b) return;
    n = *q;
    if (n.type == CELL) {
        real d2 = SQR(n.pos[0] - b->pos[0]) + SQR(n.pos[1] - b->pos[1]);
        if (SQR(size) >= SQR(THETA) * d2) {
            for (i = 0; i < NSUB; i++)
                if (((gcellptr)q)->u.sub[i]) walk(b, ((gcellptr)q)->u.sub[i], size / 2);
            return;
        }
    }
    gravsub(b, n.mass, n.pos);
}

static real xrand(s) unsigned long *s;
{
    *s = (*s * 69069 + 1) & 0xffffffffL;
    return *s / 4294967296.0 * 3.9 - 1.95;
}

splitc_main()
{
    unsigned long seed = 123;
    int i, k, step;
    vector mid;
    cellptr root;
    real total, worst = 0;

    bodies = (body *spread)all_spread_malloc(NBODY, sizeof(body));
    roots = (nodeptr *spread)all_spread_malloc(PROCS, sizeof(nodeptr));
    mid[0] = mid[1] = 0.0;
    root = makecell();
    for (i = 0; i < NBODY; i++) {
        vector p;
        p[0] = xrand(&seed), p[1] = xrand(&seed);
        if (i % PROCS == MYPROC) {
            bodyptr b = (bodyptr)(bodies + i);
            b->type = BODY, b->mass = i + 1;
            for (k = 0; k < NDIM; k++) b->pos[k] = p[k], b->acc[k] = 0;
            loadtree(root, b, mid, rsize);
        }
    }
    roots[MYPROC] = (nodeptr)root;
    barrier();
    for (step = 1; step < PROCS; step <<= 1) {
        if (MYPROC % (2 * step) == 0 && MYPROC + step < PROCS)
            roots[MYPROC] = merge(roots[MYPROC], roots[MYPROC + step], mid, rsize);
        barrier();
    }
    on_one total = hackcofm(roots[0]);
    barrier();
    for_my_1d(i, NBODY)
        walk(tolocal(bodies + i), roots[0], rsize);
    for_my_1d(i, NBODY) {
        body copy, other; int j;
        copy = *(bodyptr)(bodies + i);
        copy.acc[0] = copy.acc[1] = 0;
        for (j = 0; j < NBODY; j++) if (i != j) {
            other = bodies[j];
            gravsub(&copy, other.mass, other.pos);
        }
        {
            real *a = ((bodyptr)(bodies + i))->acc;
            real e = sqrt(SQR(a[0] - copy.acc[0]) + SQR(a[1] - copy.acc[1])) / sqrt(SQR(copy.acc[0]) + SQR(copy.acc[1]));
            if (e > worst) worst = e;
        }
    }
    worst = all_reduce_to_one_dmax(worst);
    on_one {
        printf("tree of %d bodies: mass %.1f\n", NBODY, total);
        if (worst < 0.02) printf("forces agree with all pairs within 2 %%\n");
        else printf("forces differ by %g\n", worst);
    }
    barrier();
}
