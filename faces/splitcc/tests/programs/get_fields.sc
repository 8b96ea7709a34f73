/* Gets into fields, elements and through pointers.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

typedef struct { int color; double w; } edge;
edge X[PROCS]::[3];

int splitc_main(int argc, char **argv)
{
    edge b[3];
    int i, t, *pt = &t;
    register int r;
    for (i = 0; i < 3; i++) { X[MYPROC][i].color = MYPROC * 10 + i; X[MYPROC][i].w = i; }
    barrier();
    for (i = 0; i < 3; i++) { b[i].color := X[NEXT][i].color; b[i].w := X[NEXT][i].w; }
    *pt := X[NEXT][2].color;
    r := X[NEXT][1].color;
    sync();
    CHECK(b[2].color == NEXT * 10 + 2 && b[1].w == 1 && t == NEXT * 10 + 2 && r == NEXT * 10 + 1);
    b[0] := X[NEXT][2];
    sync();
    CHECK(b[0].color == NEXT * 10 + 2);
    DONE();
}
