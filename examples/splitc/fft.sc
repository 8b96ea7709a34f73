/* The Fourier transform with small transfers (Split-C, Table 2: fft): each point is put by itself. Usage: fft [-n points] */
#define NAME "fft"
#include "transform.h"

static void remap(point *mine, point *spread blocks, long n, long here)
{
    long i, place;
    point *global to[PROCS];
    int p;

    for (p = 0; p < PROCS; p++)
        to[p] = (point *global)(blocks + p);
    for (i = 0; i < here; i++) {
        place = i * PROCS + MYPROC;
        *(to[place / here] + place % here) := mine[i];
    }
    sync();
}
