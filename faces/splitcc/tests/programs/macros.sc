/* Macros that take and make global places.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int X[PROCS]::[4], x, y;
#define A(p, i) X[p][i]
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define SWAP(t, a, b) { t s; s = (a); (a) = (b); (b) = s; }

int splitc_main(int argc, char **argv)
{
    int i;
    A(MYPROC, 2) = 7;
    barrier();
    CHECK(A(NEXT, 2) == 7);
    SWAP(int, x, *toglobal(MYPROC, &y));
    CHECK(MAX(A(NEXT, 2), 3) == 7);
    DONE();
}
