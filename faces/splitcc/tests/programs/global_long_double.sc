/* Reading and writing long double through a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

long double x;

int splitc_main(int argc, char **argv)
{
    long double *global p = toglobal(LAST, &x);
    on_one *p = 1.25L;
    barrier();
    CHECK(*p == (long double)(1.25L));
    if (MYPROC == LAST) CHECK(x == (long double)(1.25L));
    DONE();
}
