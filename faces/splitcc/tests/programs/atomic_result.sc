/* Results of atomic procedures.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int ticket, seen[200];
int take(int *p) { return (*p)++; }
double half(int *p, double d) { return d / 2 + *p; }

int splitc_main(int argc, char **argv)
{
    int i, got;
    for (i = 0; i < 20; i++) { got = atomic(take, toglobal(LAST, &ticket)); seen[got] = 1; }
    barrier();
    CHECK(*toglobal(LAST, &ticket) == 20 * PROCS);
    got = 0;
    for (i = 0; i < 20 * PROCS; i++) got += seen[i];
    CHECK(got == 20 && all_reduce_to_all_add(got) == 20 * PROCS);
    CHECK(atomic_d(half, toglobal(LAST, &ticket), 3.0) == 1.5 + 20 * PROCS);
    DONE();
}
