/* A read after an atomic procedure of the same processor sees what it did.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
void add(int *p, int n) { *p += n; }

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, &x);
    x = 0;
    barrier();
    atomic(add, p, 5);
    CHECK(*p == 5);
    atomic(add, p, 2);
    CHECK(*p + 1 == 8);
    barrier();
    CHECK(x == 7);
    DONE();
}
