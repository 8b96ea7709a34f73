/* Long expressions over many global places.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

double u[256]::;
#define POS(a, x, y) a[((y) * 16) + (x)]

int splitc_main(int argc, char **argv)
{
    int i;
    for_my_1d(i, 256) u[i] = i;
    barrier();
    for (i = 17; i < 200; i++)
        CHECK(POS(u, i, 0) + (1 / 2.0) * (4 * (POS(u, i + 1, 0) + POS(u, i - 1, 0) + POS(u, i, 1) + POS(u, i, -1) - 4 * POS(u, i, 0))) == u[i]);
    DONE();
}
