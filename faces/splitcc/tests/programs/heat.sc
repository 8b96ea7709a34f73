/* A 3D heat equation on a processor mesh, with faces packed into buffers; typedefed spread arrays, PROCSLOG, butterfly exchange.
 * procs: 1 2 4
 * output: total heat 1000.00, max error 0
 */
#include <split-c/split-c.h>
#include <split-c/control.h>
#include <stdio.h>
#include <stdlib.h>

#define NX 8
#define NY 8
#define NZ 16
#define IDX(x,y,z) (((z) * NY + (y)) * NX + (x))
typedef double plane_t[NX * NY];
typedef struct { plane_t low, high; int low_seq, high_seq; } halo_t;
halo_t *spread halos;
double *mine, *next;
int depth;

static double at(z, y, x) int z, y, x;
{
    halo_t *h = (halo_t *)(halos + MYPROC);
    if (x < 0 || x >= NX || y < 0 || y >= NY) return 0;
    if (z < 0) return MYPROC ? h->low[y * NX + x] : 0.;
    if (z >= depth) return MYPROC < PROCS - 1 ? h->high[y * NX + x] : 0.;
    return mine[IDX(x, y, z)];
}

static int inside(x, y, z, n) { return x >= 0 && x < NX && y >= 0 && y < NY && z >= 0 && z < n; }

static void exchange(seq)
{
    halo_t *global up = (halo_t *global)(halos + (MYPROC + 1) % PROCS), *global down = (halo_t *global)(halos + (MYPROC + PROCS - 1) % PROCS);
    if (MYPROC < PROCS - 1) { bulk_store(up->low, &mine[IDX(0, 0, depth - 1)], sizeof(plane_t)); up->low_seq :- seq; }
    if (MYPROC > 0) { bulk_store(down->high, mine, sizeof(plane_t)); down->high_seq :- seq; }
    all_store_sync();
    { halo_t *h = tolocal(halos + MYPROC); if (MYPROC && h->low_seq != seq || MYPROC < PROCS - 1 && h->high_seq != seq) printf("halo is late\n"); }
}

static void relax(get, n, out) double (*get)(); double *out;
{
    int x, y, z, d; static int dx[] = {1,-1,0,0,0,0}, dy[] = {0,0,1,-1,0,0}, dz[] = {0,0,0,0,1,-1};
    for (z = 0; z < n; z++) for (y = 0; y < NY; y++) for (x = 0; x < NX; x++) {
        double v = get(z, y, x), s = 0; int k = 0, gz = n == NZ && get != at ? z : z + MYPROC * depth;
        for (d = 0; d < 6; d++) if (inside(x + dx[d], y + dy[d], gz + dz[d], NZ)) { s += get(z + dz[d], y + dy[d], x + dx[d]); k++; }
        out[IDX(x, y, z)] = v + 0.1 * (s - k * v);
    }
}

double *serial; static double serial_at(z, y, x) { return serial[IDX(x, y, z)]; }

/* butterfly: every processor has the sum */
double slot[PROCS]::[8];
static double butterfly(v) double v;
{
    int k;
    for (k = 0; k < PROCSLOG; k++) {
        int partner = MYPROC ^ (1 << k);
        slot[partner][k] := v;
        sync(); barrier();
        v += ((double *)slot[MYPROC])[k];
    }
    return v;
}

splitc_main()
{
    int i, step; double total, worst = 0, *t, *serial_next;
    halos = all_spread_malloc(PROCS, sizeof(halo_t));
    depth = NZ / PROCS;
    mine = (double *)calloc(NX * NY * depth, sizeof(double)), next = (double *)calloc(NX * NY * depth, sizeof(double));
    serial = (double *)calloc(NX * NY * NZ, sizeof(double)), serial_next = (double *)calloc(NX * NY * NZ, sizeof(double));
    serial[IDX(3, 4, 5)] = 1000.;
    if (5 / depth == MYPROC) mine[IDX(3, 4, 5 % depth)] = 1000.;
    barrier();
    for (step = 1; step <= 12; step++) {
        exchange(step);
        relax(at, depth, next);
        t = mine, mine = next, next = t;
        barrier();
        relax(serial_at, NZ, serial_next);
        t = serial, serial = serial_next, serial_next = t;
    }
    for (i = 0, total = 0; i < NX * NY * depth; i++) {
        double e = mine[i] - serial[i + MYPROC * NX * NY * depth];
        total += mine[i];
        worst = e > worst ? e : -e > worst ? -e : worst;
    }
    total = butterfly(total);
    worst = all_reduce_to_all_max_d(worst);
    on_one printf("total heat %.2f, max error %g\n", total, worst);
    barrier();
    all_spread_free(halos);
    return EXIT_SUCCESS;
}
