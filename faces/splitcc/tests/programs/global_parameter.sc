/* Global pointers as parameters and results.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
int get(int *global p) { return *p; }
int *global pass(int *global p, int n) { return p + n; }
int *global old(p, n) int *global p; int n; { return p + n - 1; }

int splitc_main(int argc, char **argv)
{
    x = MYPROC;
    barrier();
    CHECK(get(toglobal(NEXT, &x)) == NEXT);
    CHECK(*pass(toglobal(NEXT, &x), 0) == NEXT);
    CHECK(*old(toglobal(NEXT, &x), 1) == NEXT);
    DONE();
}
