/* Names for global types.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
typedef int *global gint;
int read_it(gint p) { return *p; }

int splitc_main(int argc, char **argv)
{
    gint p = toglobal(NEXT, &x), q[2];
    x = 3 + MYPROC;
    barrier();
    q[0] = p;
    CHECK(*q[0] == 3 + NEXT);
    CHECK(read_it(p) == 3 + NEXT);
    DONE();
}
