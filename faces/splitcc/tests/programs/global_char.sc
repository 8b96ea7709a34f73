/* Reading and writing char through a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

char x;

int splitc_main(int argc, char **argv)
{
    char *global p = toglobal(LAST, &x);
    on_one *p = 'q';
    barrier();
    CHECK(*p == (char)('q'));
    if (MYPROC == LAST) CHECK(x == (char)('q'));
    DONE();
}
