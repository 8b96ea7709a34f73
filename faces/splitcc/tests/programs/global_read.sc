/* A blocking read of a scalar.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;

int splitc_main(int argc, char **argv)
{
    int *global p;
    x = 10 + MYPROC;
    barrier();
    p = toglobal(NEXT, &x);
    CHECK(*p == 10 + NEXT);
    DONE();
}
