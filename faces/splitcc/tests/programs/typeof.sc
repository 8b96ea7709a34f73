/* typeof of global places and pointers.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, &x);
    __typeof__(p) q = p;
    __typeof__(*p) v = *q;
    typeof(x) w = v;
    CHECK(v == 0 && w == 0);
    CHECK(({ __typeof__(*p + 1) t = *p + 1; t; }) == 1);
    DONE();
}
