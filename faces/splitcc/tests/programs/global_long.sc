/* Reading and writing long through a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

long x;

int splitc_main(int argc, char **argv)
{
    long *global p = toglobal(LAST, &x);
    on_one *p = -123456789012L;
    barrier();
    CHECK(*p == (long)(-123456789012L));
    if (MYPROC == LAST) CHECK(x == (long)(-123456789012L));
    DONE();
}
