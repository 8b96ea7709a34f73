/* GNU statement expressions with accesses.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, &x);
    int a;
    x = 6;
    barrier();
    a = ({ int t = *p; t * 2; }) + 1;
    CHECK(a == 13);
    DONE();
}
