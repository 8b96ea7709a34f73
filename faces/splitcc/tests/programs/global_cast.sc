/* Casts between global pointers, to local pointers and to integers.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;

int splitc_main(int argc, char **argv)
{
    long bits;
    char *global c;
    x = 0x01020304;
    barrier();
    c = (char *global)toglobal(NEXT, &x);
    CHECK(*c == 4 && c[3] == 1);
    CHECK((int *)toglobal(NEXT, &x) == &x);
    CHECK(tolocal(toglobal(NEXT, &x)) == &x);
    bits = (long)toglobal(NEXT, &x);
    CHECK((int *global)bits == toglobal(NEXT, &x));
    CHECK((int *global)(void *global)c == toglobal(NEXT, &x));
    DONE();
}
