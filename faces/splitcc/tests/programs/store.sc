/* A store is counted at its target.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
double y[4];

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, &x);
    *p :- 4 + MYPROC;
    store_sync(sizeof(int));
    CHECK(x == 4 + (MYPROC + PROCS - 1) % PROCS);
    barrier();
    toglobal(NEXT, y)[1] :- 2.5;
    toglobal(NEXT, y)[2] :- 3.5;
    store_sync(2 * sizeof(double));
    CHECK(y[1] == 2.5 && y[2] == 3.5);
    DONE();
}
