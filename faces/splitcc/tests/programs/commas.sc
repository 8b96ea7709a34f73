/* Commas and assignments within expressions.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, &x), a, b;
    x = 2;
    barrier();
    a = (b = *p, b + 1);
    CHECK(a == 3 && b == 2);
    if ((a = *p) == 2 && (b = a + *p) == 4) a = 10;
    CHECK(a == 10 && b == 4);
    DONE();
}
