/* A put of the value of an expression, with a conversion.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

double d;

int splitc_main(int argc, char **argv)
{
    double *global p = toglobal(NEXT, &d);
    int i = 3;
    *p := i * 2 + 1;
    i = 0;
    sync();
    barrier();
    CHECK(d == 7.0);
    DONE();
}
