/* The difference of two global pointers.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

double a[10];

int splitc_main(int argc, char **argv)
{
    double *global p = toglobal(NEXT, a), *global q = p + 7;
    CHECK(q - p == 7);
    CHECK(p - q == -7);
    CHECK(q - 3 - p == 4);
    DONE();
}
