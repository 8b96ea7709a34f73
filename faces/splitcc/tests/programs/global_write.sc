/* A blocking write is in its place when it returns.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, &x);
    *p = 5 + MYPROC;
    CHECK(*p == 5 + MYPROC);
    barrier();
    CHECK(x == 5 + (MYPROC + PROCS - 1) % PROCS);
    DONE();
}
