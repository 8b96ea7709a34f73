/* Reading and writing float through a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

float x;

int splitc_main(int argc, char **argv)
{
    float *global p = toglobal(LAST, &x);
    on_one *p = 1.5f;
    barrier();
    CHECK(*p == (float)(1.5f));
    if (MYPROC == LAST) CHECK(x == (float)(1.5f));
    DONE();
}
