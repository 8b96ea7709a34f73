/* Arithmetic of global pointers stays on the processor.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int a[10];

int splitc_main(int argc, char **argv)
{
    int i;
    int *global p;
    for (i = 0; i < 10; i++) a[i] = 100 * MYPROC + i;
    barrier();
    p = toglobal(NEXT, a);
    CHECK(*(p + 3) == 100 * NEXT + 3);
    CHECK(*(4 + p) == 100 * NEXT + 4);
    p = p + 9;
    CHECK(*p == 100 * NEXT + 9);
    CHECK(*(p - 2) == 100 * NEXT + 7);
    CHECK(toproc(p) == NEXT);
    DONE();
}
