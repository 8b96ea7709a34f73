/* Arithmetic of a spread pointer steps over the processors.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    int *spread p = all_spread_malloc(3 * PROCS, sizeof(int));
    int i;
    CHECK(toproc(p) == 0);
    for_my_1d(i, 3 * PROCS) p[i] = i;
    barrier();
    for (i = 0; i < 3 * PROCS; i++) { CHECK(*(p + i) == i); CHECK(toproc(&p[i]) == i % PROCS); }
    CHECK((p + PROCS) - p == PROCS);
    CHECK((int *)(p + PROCS) - (int *)p == 1);
    barrier();
    all_spread_free(p);
    DONE();
}
