/* A get into another type converts.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;

int splitc_main(int argc, char **argv)
{
    double d;
    long l;
    char c;
    x = 65 + MYPROC;
    barrier();
    d := *toglobal(NEXT, &x);
    l := *toglobal(NEXT, &x);
    c := *toglobal(NEXT, &x);
    sync();
    CHECK(d == 65 + NEXT && l == 65 + NEXT && c == 65 + NEXT);
    DONE();
}
