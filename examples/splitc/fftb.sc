/* The Fourier transform with bulk transfers (Split-C, Table 2: fftb): the points for one processor are put together, and it
 * deals them out. Usage: fftb [-n points] */
#define NAME "fftb"
#include "transform.h"

static void remap(point *mine, point *spread blocks, long n, long here)
{
    /* The points for processor p are consecutive here, and every PROCS-th there. */
    long part = here / PROCS, i;
    point *spread inbox = all_spread_malloc(PROCS, here * sizeof(point));
    point *in = (point *)(inbox + MYPROC), *block = (point *)(blocks + MYPROC);
    int k, p;

    for (k = 0; k < PROCS; k++) {
        p = (MYPROC + k) % PROCS;
        bulk_put((point *global)(inbox + p) + MYPROC * part, mine + p * part, part * sizeof(point));
    }
    sync();
    barrier();
    for (p = 0; p < PROCS; p++)
        for (i = 0; i < part; i++)
            block[i * PROCS + p] = in[p * part + i];
    all_spread_free(inbox);
}
