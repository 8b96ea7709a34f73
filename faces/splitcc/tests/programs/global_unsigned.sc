/* Reading and writing unsigned through a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

unsigned x;

int splitc_main(int argc, char **argv)
{
    unsigned *global p = toglobal(LAST, &x);
    on_one *p = 4000000000u;
    barrier();
    CHECK(*p == (unsigned)(4000000000u));
    if (MYPROC == LAST) CHECK(x == (unsigned)(4000000000u));
    DONE();
}
