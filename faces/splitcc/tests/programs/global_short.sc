/* Reading and writing short through a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

short x;

int splitc_main(int argc, char **argv)
{
    short *global p = toglobal(LAST, &x);
    on_one *p = -1234;
    barrier();
    CHECK(*p == (short)(-1234));
    if (MYPROC == LAST) CHECK(x == (short)(-1234));
    DONE();
}
