/* Reading and writing long long through a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

long long x;

int splitc_main(int argc, char **argv)
{
    long long *global p = toglobal(LAST, &x);
    on_one *p = 1LL << 60;
    barrier();
    CHECK(*p == (long long)(1LL << 60));
    if (MYPROC == LAST) CHECK(x == (long long)(1LL << 60));
    DONE();
}
