/* Reductions to one and to all, of all types.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    int n = MYPROC + 1, s = PROCS * (PROCS + 1) / 2, r;
    CHECK(all_reduce_to_all_add(n) == s && all_reduce_to_all_max(n) == PROCS && all_reduce_to_all_min(n) == 1);
    CHECK(all_reduce_to_all_add_i(n) == s && all_reduce_to_all_max_l(n * 10000000000L) == PROCS * 10000000000L);
    CHECK(all_reduce_to_all_add_d(n / 2.0) == s / 2.0 && all_reduce_to_all_dadd(n / 2.0) == s / 2.0);
    CHECK(all_reduce_to_all_dmin(n * 1.5) == 1.5 && all_reduce_to_all_max_f(n * 0.5f) == PROCS * 0.5f);
    r = all_reduce_to_one_add(n);
    on_one CHECK(r == s);
    r = all_reduce_to_one_max(n);
    on_one CHECK(r == PROCS);
    CHECK(all_reduce_to_all_or(1 << MYPROC) == (1 << PROCS) - 1);
    DONE();
}
