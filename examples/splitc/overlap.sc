/* Accesses that the compiler lets be under way together (Split-C 3): a stencil, a copy, and writes of an array of another
 * processor. Compile it with -O2, and with -O2 -fno-split-phase, and compare. Usage: overlap [-n rounds] */
#include "report.h"

#define POINTS 60
#define ELEMENTS 256

double U[POINTS + 4]::;
int there[ELEMENTS];

int splitc_main(int argc, char **argv)
{
    long rounds = argument(argc, argv, "-n", 10L), wrong = 0;
    int *global p = toglobal((MYPROC + 1) % PROCS, there), copy[ELEMENTS], i, r;
    double start, stencil, reads, writes, sum = 0, d;
    char what[160];

    for_my_1d(i, POINTS + 4) U[i] = i * i;
    for (i = 0; i < ELEMENTS; i++)
        there[i] = i * (MYPROC + 1);
    barrier();

    start = get_seconds();
    for (r = 0; r < rounds; r++)
        for (i = 2; i < POINTS + 2; i++) {
            d = U[i - 2] + U[i - 1] + U[i + 1] + U[i + 2] - 4 * U[i];
            sum += d;
        }
    stencil = get_seconds() - start;
    wrong += sum != 10.0 * POINTS * rounds;

    start = get_seconds();
    for (r = 0; r < rounds; r++)
        for (i = 0; i < ELEMENTS; i++)
            copy[i] = p[i];
    reads = get_seconds() - start;
    for (i = 0; i < ELEMENTS; i++)
        wrong += copy[i] != i * ((MYPROC + 1) % PROCS + 1);
    barrier();

    start = get_seconds();
    for (r = 0; r < rounds; r++)
        for (i = 0; i < ELEMENTS; i++)
            p[i] = i + r;
    writes = get_seconds() - start;
    barrier();
    for (i = 0; i < ELEMENTS; i++)
        wrong += there[i] != i + rounds - 1;

    sprintf(what, "overlap: %.3f us a point, %.3f us an element read, %.3f us an element written",
            stencil * 1e6 / rounds / POINTS, reads * 1e6 / rounds / ELEMENTS, writes * 1e6 / rounds / ELEMENTS);
    return report(what, stencil + reads + writes, wrong);
}
