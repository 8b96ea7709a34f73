/* global and spread as ordinary names.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int use(int spread, int *global) { return spread + *(int *)global; }

int splitc_main(int argc, char **argv)
{
    int global = 3, spread = 4;
    int *global_pointer = &global;
    struct { int global; int spread; } s;
    int *global p = &global, *spread q = all_spread_malloc(PROCS, 4);
    s.global = global + spread;
    s.spread = use(global, &spread);
    CHECK(s.global == 7 && s.spread == 7 && *global_pointer == 3 && *p == 3);
    barrier();
    all_spread_free(q);
    DONE();
}
