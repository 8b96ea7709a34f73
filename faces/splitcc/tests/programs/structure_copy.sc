/* Structures are copied through global pointers, both ways.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

typedef struct { int v[20]; double d; } big;
big there;

int splitc_main(int argc, char **argv)
{
    big mine, *global p = toglobal(NEXT, &there);
    int i;
    for (i = 0; i < 20; i++) { mine.v[i] = i * MYPROC; there.v[i] = -1; }
    mine.d = MYPROC + 0.5;
    barrier();
    *p = mine;
    barrier();
    CHECK(there.v[3] == 3 * ((MYPROC + PROCS - 1) % PROCS));
    mine = *p;
    CHECK(mine.v[19] == 19 * MYPROC && mine.d == MYPROC + 0.5);
    CHECK((*p).v[2] == 2 * MYPROC);
    *toglobal(NEXT, &there) = *p;
    CHECK(p->v[19] == 19 * MYPROC);
    DONE();
}
