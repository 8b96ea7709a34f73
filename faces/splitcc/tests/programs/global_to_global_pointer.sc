/* A global pointer to a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
int *global p;

int splitc_main(int argc, char **argv)
{
    int *global *global pp = toglobal(NEXT, &p);
    int y;
    x = 40 + MYPROC;
    p = toglobal(MYPROC, &x);
    barrier();
    CHECK(**pp == 40 + NEXT);
    **pp = 50;
    barrier();
    CHECK(x == 50);
    barrier();
    on_one { *pp += 0; CHECK(**pp == 50); y = (*pp)[0]; CHECK(y == 50); }
    DONE();
}
