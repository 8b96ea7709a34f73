/* A put is in its place after sync.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
double y[4];

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, &x);
    *p := 3 + MYPROC;
    toglobal(NEXT, y)[2] := 2.5;
    sync();
    barrier();
    CHECK(x == 3 + (MYPROC + PROCS - 1) % PROCS && y[2] == 2.5);
    DONE();
}
