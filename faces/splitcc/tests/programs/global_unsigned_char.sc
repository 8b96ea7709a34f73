/* Reading and writing unsigned char through a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

unsigned char x;

int splitc_main(int argc, char **argv)
{
    unsigned char *global p = toglobal(LAST, &x);
    on_one *p = 250;
    barrier();
    CHECK(*p == (unsigned char)(250));
    if (MYPROC == LAST) CHECK(x == (unsigned char)(250));
    DONE();
}
