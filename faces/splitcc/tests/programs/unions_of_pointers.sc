/* Global pointers in unions and nested structures.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
struct outer { struct { union { int *global g; unsigned long bits; } u; int *global list[2]; } in; };

int splitc_main(int argc, char **argv)
{
    struct outer o;
    x = 3;
    barrier();
    o.in.u.g = toglobal(NEXT, &x);
    CHECK(*o.in.u.g == 3 && (o.in.u.bits >> 48) == NEXT);
    o.in.list[1] = o.in.u.g;
    CHECK(*o.in.list[1] == 3);
    DONE();
}
