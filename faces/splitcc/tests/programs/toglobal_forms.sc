/* toglobal, tolocal and toproc.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x, a[5];

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(LAST, &x);
    CHECK(toproc(p) == LAST && tolocal(p) == &x);
    CHECK(toproc(toglobal(0, p)) == 0);
    CHECK(toglobal(LAST, (int *)0) == NULL);
    CHECK(tolocal(toglobal(LAST, a)) == a && tolocal(toglobal(0, &a[2])) == a + 2);
    DONE();
}
