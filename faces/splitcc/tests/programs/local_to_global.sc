/* A local pointer becomes a global one by assignment.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int take(int *global p) { return *p; }

int splitc_main(int argc, char **argv)
{
    int y = 3, *lp = &y;
    int *global p = lp, *global q, *global z;
    q = &y;
    CHECK(p == q && toproc(p) == MYPROC && *p == 3);
    lp = NULL;
    z = lp;
    CHECK(z == NULL);
    CHECK(take(&y) == 3);
    q = MYPROC >= 0 ? &y : p;
    CHECK(*q == 3);
    CHECK(p == &y);
    DONE();
}
