/* A put of what is read from elsewhere.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x, y;

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, &x), *global q = toglobal(LAST, &y);
    y = 10 + MYPROC;
    barrier();
    *p := *q;
    sync();
    barrier();
    CHECK(x == 10 + LAST);
    DONE();
}
