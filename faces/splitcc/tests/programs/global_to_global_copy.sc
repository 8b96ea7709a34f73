/* An assignment from one global place to another.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x, y;

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, &x), *global q = toglobal(LAST, &y);
    x = 7 + MYPROC;
    barrier();
    on_one { *q = *p; CHECK(*q == 7 + NEXT); }
    DONE();
}
