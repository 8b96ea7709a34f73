/* Reading and writing double through a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

double x;

int splitc_main(int argc, char **argv)
{
    double *global p = toglobal(LAST, &x);
    on_one *p = -2.25;
    barrier();
    CHECK(*p == (double)(-2.25));
    if (MYPROC == LAST) CHECK(x == (double)(-2.25));
    DONE();
}
