/* sizeof of global types and places.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int X[PROCS]::[10];

int splitc_main(int argc, char **argv)
{
    struct s { char c; double d; } *global p;
    int *global q, *spread r;
    CHECK(sizeof p == 8 && sizeof(int *global) == 8 && sizeof(int *spread) == 8 && sizeof r == 8);
    CHECK(sizeof *p == 16 && sizeof(p->d) == 8 && sizeof p->c == 1 && sizeof *q == 4 && sizeof q[3] == 4);
    CHECK(sizeof X == PROCS * 10 * sizeof(int) && sizeof X[0] == 40 && sizeof X[0][0] == 4);
    CHECK(sizeof(X) / sizeof(X[0]) == PROCS);
    DONE();
}
