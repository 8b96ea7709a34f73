/* Qualified objects behind global pointers.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
struct { int a; } s;

int splitc_main(int argc, char **argv)
{
    volatile int *global p = toglobal(NEXT, &x);
    const int *global q = toglobal(NEXT, &x);
    const struct s { int a; } *global r = toglobal(NEXT, &s);
    *p = 4;
    CHECK(*q == 4);
    CHECK(r->a == 0);
    { int t; t := *q; sync(); CHECK(t == 4); }
    DONE();
}
