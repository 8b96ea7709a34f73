/* Electromagnetic waves on a bipartite graph (Split-C; "Parallel Programming in Split-C", 1993). Each E node is updated from H
 * nodes, some on other processors, and the other way round.
 * Usage: em3d [-v variant] [-n nodes for each processor] [-d degree] [-r percent remote] [-s steps]
 * Variants: 0 simple (each remote value is read where it is used), 1 bundled (each is read once, into a ghost node), 2 get,
 * 3 put, 4 store, 5 bulk. */
#include "report.h"

#define VARIANTS 6
static char *names[VARIANTS] = { "simple", "bundled", "get", "put", "store", "bulk" };

typedef struct ghost { int proc, index; } ghost;

/* One side of the graph on one processor. */
typedef struct side {
    double *value;          /* of the nodes */
    int *from;              /* n * degree: local nodes below n, ghost nodes from n on */
    double *weight;
    double *ghost_value;    /* of the other side's nodes on other processors */
    ghost *ghosts;          /* which they are, by processor */
    int ghost_count;
    int *ghost_start;       /* by processor */
    /* Who needs which of this side's nodes: for puts, stores and bulk stores. */
    int *send_start, *send_index;
    double *global *send_to;
    double *buffer;
} side;

int n, degree, percent, steps, variant;
side E, H;

/* Where the k-th edge of a node leads: the same on all processors, so that anybody can make the graph. */
static void edge(int which, int proc, int i, int k, int *to_proc, int *to_index, double *weight)
{
    unsigned long x = ((((unsigned long)which * PROCS + proc) * n + i) * degree + k) * 0x9e3779b97f4a7c15ul + 99;

    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ul;
    x ^= x >> 32;
    *to_index = x % n;
    x /= n;
    *to_proc = PROCS > 1 && (int)(x % 100) < percent ? (proc + 1 + (int)(x / 100 % (PROCS - 1))) % PROCS : proc;
    *weight = (double)(x % 1000) / (1000 * degree);
}

static double start_value(int which, int proc, int i) { return (double)((which * 31 + proc * 17 + i * 7) % 100) / 100; }

/* Orders ghosts by processor and node. */
static int by_place(const void *a, const void *b)
{
    ghost *x = (ghost *)a, *y = (ghost *)b;

    return x->proc != y->proc ? x->proc - y->proc : x->index - y->index;
}

static void make_side(side *s, int which)
{
    int i, k, p, proc, index, low, high, count = 0;
    double weight;
    ghost key;

    s->value = (double *)malloc(n * sizeof(double));
    s->from = (int *)malloc(n * degree * sizeof(int));
    s->weight = (double *)malloc(n * degree * sizeof(double));
    s->ghosts = (ghost *)malloc((n * degree + 1) * sizeof(ghost));
    s->ghost_start = (int *)malloc((PROCS + 1) * sizeof(int));
    for (i = 0; i < n; i++) {
        s->value[i] = start_value(which, MYPROC, i);
        for (k = 0; k < degree; k++) {
            edge(which, MYPROC, i, k, &proc, &index, &weight);
            if (proc != MYPROC) {
                s->ghosts[count].proc = proc;
                s->ghosts[count++].index = index;
            }
        }
    }
    qsort(s->ghosts, count, sizeof(ghost), by_place);
    for (i = k = 0; i < count; i++)
        if (k == 0 || by_place(&s->ghosts[k - 1], &s->ghosts[i]) != 0)
            s->ghosts[k++] = s->ghosts[i];
    s->ghost_count = k;
    s->ghost_value = (double *)malloc((k + 1) * sizeof(double));
    for (p = i = 0; p < PROCS; p++) {
        s->ghost_start[p] = i;
        while (i < k && s->ghosts[i].proc == p)
            i++;
    }
    s->ghost_start[PROCS] = k;
    for (i = 0; i < n; i++)
        for (k = 0; k < degree; k++) {
            edge(which, MYPROC, i, k, &proc, &index, &weight);
            s->weight[i * degree + k] = weight;
            s->from[i * degree + k] = index;
            if (proc == MYPROC)
                continue;
            key.proc = proc, key.index = index;
            low = 0, high = s->ghost_count;
            while (low < high) {
                int middle = (low + high) / 2;
                if (by_place(&s->ghosts[middle], &key) < 0)
                    low = middle + 1;
                else
                    high = middle;
            }
            s->from[i * degree + k] = n + low;
        }
}

double *global Values[2][PROCS]::;
double *global Ghosts[2][PROCS]::;
ghost *global Lists[2][PROCS]::;
int *global Starts[2][PROCS]::;

/* The global pointer of processor p in one of these arrays: element (which, p) is written by p, and read by all. */
static void tell(side *s, int which)
{
    Values[which][MYPROC] = s->value;
    Ghosts[which][MYPROC] = s->ghost_value;
    Lists[which][MYPROC] = s->ghosts;
    Starts[which][MYPROC] = s->ghost_start;
}

/* From the lists of the others' ghosts: what to send to whom. `of` has the nodes, the ghosts belong to the other side. */
static void make_lists(side *of, int ghosts_of)
{
    int p, i, count = 0, first, last;
    ghost g;

    of->send_start = (int *)malloc((PROCS + 1) * sizeof(int));
    for (p = 0; p < PROCS; p++) {
        of->send_start[p] = count;
        count += *(Starts[ghosts_of][p] + MYPROC + 1) - *(Starts[ghosts_of][p] + MYPROC);
    }
    of->send_start[PROCS] = count;
    of->send_index = (int *)malloc((count + 1) * sizeof(int));
    of->send_to = (double *global *)malloc((count + 1) * sizeof(double *global));
    of->buffer = (double *)malloc((count + 1) * sizeof(double));
    for (p = 0, count = 0; p < PROCS; p++) {
        int *global start = Starts[ghosts_of][p];
        ghost *global list = Lists[ghosts_of][p];
        double *global to = Ghosts[ghosts_of][p];
        first = start[MYPROC], last = start[MYPROC + 1];
        for (i = first; i < last; i++) {
            g = list[i];
            of->send_index[count] = g.index;
            of->send_to[count++] = to + i;
        }
    }
}

/* Brings the values of `of` to the ghosts of `to`, as the variant does it. */
static void exchange_ghosts(side *to, side *of, double *global theirs[])
{
    int i, p, count = of->send_start[PROCS];

    switch (variant) {
    case 1:
        for (i = 0; i < to->ghost_count; i++)
            to->ghost_value[i] = theirs[to->ghosts[i].proc][to->ghosts[i].index];
        break;
    case 2:
        for (i = 0; i < to->ghost_count; i++)
            to->ghost_value[i] := theirs[to->ghosts[i].proc][to->ghosts[i].index];
        sync();
        break;
    case 3:
        for (i = 0; i < count; i++)
            *of->send_to[i] := of->value[of->send_index[i]];
        sync();
        barrier();
        break;
    case 4:
        for (i = 0; i < count; i++)
            *of->send_to[i] :- of->value[of->send_index[i]];
        all_store_sync();
        break;
    case 5:
        for (i = 0; i < count; i++)
            of->buffer[i] = of->value[of->send_index[i]];
        for (p = 0; p < PROCS; p++)
            if (of->send_start[p + 1] > of->send_start[p])
                bulk_store(of->send_to[of->send_start[p]], of->buffer + of->send_start[p],
                           (of->send_start[p + 1] - of->send_start[p]) * sizeof(double));
        all_store_sync();
        break;
    }
}

static void compute(side *s, side *other, double *global theirs[])
{
    int i, k;

    for (i = 0; i < n; i++) {
        double v = s->value[i];
        for (k = 0; k < degree; k++) {
            int from = s->from[i * degree + k];
            double w = s->weight[i * degree + k];
            if (from < n)
                v -= w * other->value[from];
            else if (variant == 0)
                v -= w * theirs[s->ghosts[from - n].proc][s->ghosts[from - n].index];
            else
                v -= w * s->ghost_value[from - n];
        }
        s->value[i] = v;
    }
}

/* The same graph on one processor. */
static long compare_with_serial(double *global h[], double *global e[])
{
    double *v[2], *got = (double *)malloc(n * sizeof(double)), weight;
    long all = (long)n * PROCS, wrong = 0, j;
    int which, step, p, i, k, proc, index;

    for (which = 0; which < 2; which++) {
        v[which] = (double *)malloc(all * sizeof(double));
        for (j = 0; j < all; j++)
            v[which][j] = start_value(which, j / n, j % n);
    }
    for (step = 0; step < 2 * steps; step++) {
        which = step % 2;
        for (p = 0; p < PROCS; p++)
            for (i = 0; i < n; i++)
                for (k = 0; k < degree; k++) {
                    edge(which, p, i, k, &proc, &index, &weight);
                    v[which][(long)p * n + i] -= weight * v[!which][(long)proc * n + index];
                }
    }
    for (which = 0; which < 2; which++)
        for (p = 0; p < PROCS; p++) {
            bulk_read(got, which ? h[p] : e[p], n * sizeof(double));
            for (i = 0; i < n; i++)
                wrong += !(fabs(got[i] - v[which][(long)p * n + i]) <= 1e-9 * (1 + fabs(got[i])));
        }
    return wrong;
}

int splitc_main(int argc, char **argv)
{
    double *global e[PROCS], *global h[PROCS], seconds;
    int p, step;
    long wrong = 0;
    char what[120];

    variant = argument(argc, argv, "-v", 0L);
    n = argument(argc, argv, "-n", 100L);
    degree = argument(argc, argv, "-d", 10L);
    percent = argument(argc, argv, "-r", 20L);
    steps = argument(argc, argv, "-s", 5L);
    if (variant < 0 || variant >= VARIANTS || n <= 0 || degree <= 0)
        refuse("the variant is 0 to 5; nodes and degree are positive");
    make_side(&E, 0);
    make_side(&H, 1);
    tell(&E, 0);
    tell(&H, 1);
    barrier();
    make_lists(&H, 0);
    make_lists(&E, 1);
    for (p = 0; p < PROCS; p++) {
        e[p] = Values[0][p];
        h[p] = Values[1][p];
    }
    barrier();
    seconds = get_seconds();
    for (step = 0; step < steps; step++) {
        exchange_ghosts(&E, &H, h);
        compute(&E, &H, h);
        barrier();
        exchange_ghosts(&H, &E, e);
        compute(&H, &E, e);
        barrier();
    }
    seconds = get_seconds() - seconds;
    on_one wrong = compare_with_serial(h, e);
    barrier();
    sprintf(what, "em3d %s: %d nodes each, degree %d, %d %% remote, %.4f us per edge", names[variant], n, degree, percent,
            seconds * 1e6 / (2.0 * steps * n * degree));
    return report(what, seconds, wrong);
}
