/* Static and external global pointers.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

extern int *global e;
int *global e;
int x;

int splitc_main(int argc, char **argv)
{
    static int *global s;
    x = MYPROC;
    barrier();
    CHECK(s == NULL && e == NULL);
    s = e = toglobal(NEXT, &x);
    CHECK(*s == NEXT && *e == NEXT);
    DONE();
}
