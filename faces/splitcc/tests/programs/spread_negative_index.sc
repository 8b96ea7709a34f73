/* Steps back over processors.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    int *spread p = all_spread_malloc(4 * PROCS, sizeof(int)), *spread q;
    int i;
    for_my_1d(i, 4 * PROCS) p[i] = i;
    barrier();
    q = p + 4 * PROCS - 1;
    for (i = 0; i < 4 * PROCS; i++) CHECK(q[-i] == 4 * PROCS - 1 - i);
    CHECK(p - q == -(4 * PROCS - 1));
    barrier();
    all_spread_free(p);
    DONE();
}
