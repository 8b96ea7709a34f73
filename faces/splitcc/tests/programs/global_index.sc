/* Indexing a global pointer, also from the right.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int a[10];

int splitc_main(int argc, char **argv)
{
    int i, *global p;
    for (i = 0; i < 10; i++) a[i] = MYPROC + i;
    barrier();
    p = toglobal(NEXT, a) + 2;
    CHECK(p[3] == NEXT + 5);
    CHECK(p[-2] == NEXT);
    CHECK(3[p] == NEXT + 5);
    barrier();
    p[1] = -1;
    barrier();
    CHECK(a[3] == -1);
    DONE();
}
