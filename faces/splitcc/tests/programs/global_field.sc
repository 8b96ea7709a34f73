/* Fields of a structure behind a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

struct inner { char c; double d[3]; };
struct point { int x, y; struct inner in; } here;

int splitc_main(int argc, char **argv)
{
    struct point *global p = toglobal(NEXT, &here);
    here.x = MYPROC; here.in.d[2] = 2.5; here.in.c = 'z';
    barrier();
    CHECK(p->x == NEXT);
    CHECK(p->in.d[2] == 2.5);
    CHECK((*p).in.c == 'z');
    barrier();
    p->in.d[1] = 7;
    p->y = -1;
    (*p).x += 10;
    barrier();
    CHECK(here.in.d[1] == 7 && here.y == -1 && here.x == MYPROC + 10);
    DONE();
}
