/* The address of what a global pointer points to.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

struct { int a; int b[4]; } here;

int splitc_main(int argc, char **argv)
{
    struct s { int a; int b[4]; } *global p = toglobal(NEXT, &here);
    int *global q;
    q = &p->b[2];
    CHECK(toproc(q) == NEXT);
    *q = 9;
    barrier();
    CHECK(((struct s *)&here)->b[2] == 9);
    CHECK(&*q == q && &p[1] - p == 1);
    q = p->b;
    CHECK(q[2] == 9 && &q[1] == p->b + 1);
    DONE();
}
