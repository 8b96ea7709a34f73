/* Global places in ? :, && and || are read only when they are reached.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;

int splitc_main(int argc, char **argv)
{
    int *global p = 0, *global q = toglobal(NEXT, &x);
    x = 5;
    barrier();
    CHECK((p && *p == 3) == 0);
    CHECK((p ? *p : *q) == 5);
    CHECK(!p || *p);
    CHECK((q ? *q : *p) == 5);
    DONE();
}
