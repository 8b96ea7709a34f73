/* Atomic procedures without a prototype.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
bump(p, n, d)
    int *p;
    int n;
    double d;
{
    *p += n * d;
}

int splitc_main(int argc, char **argv)
{
    int i;
    for (i = 0; i < 10; i++) atomic(bump, toglobal(0, &x), 2, 1.5);
    barrier();
    CHECK(*toglobal(0, &x) == 30 * PROCS);
    DONE();
}
