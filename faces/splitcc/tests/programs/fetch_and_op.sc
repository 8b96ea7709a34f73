/* Fetch-and-add and its kin.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
long y;
double z;

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(0, &x);
    long *global l = toglobal(0, &y);
    double *global d = toglobal(0, &z);
    int i;
    for (i = 0; i < 100; i++) { fetch_and_add(p, 1); fetch_and_add_l(l, 2); fetch_and_add_d(d, 0.5); }
    barrier();
    CHECK(*p == 100 * PROCS && *l == 200 * PROCS && *d == 50.0 * PROCS);
    barrier();
    on_one {
        CHECK(fetch_and_add_i(p, 5) == 100 * PROCS);
        CHECK(fetch_and_store(p, 12) == 100 * PROCS + 5);
        CHECK(fetch_and_and(p, 8) == 12 && fetch_and_or(p, 3) == 8 && fetch_and_xor(p, 1) == 11 && *p == 10);
        CHECK(compare_and_swap(p, 10, 4) == 10 && compare_and_swap(p, 10, 5) == 4 && *p == 4);
        CHECK(fetch_and_max_i(p, 20) == 4 && fetch_and_min_i(p, 3) == 20 && exchange(p, 0) == 3);
        CHECK(test_and_set(p) == 0 && test_and_set(p) == 1);
    }
    DONE();
}
