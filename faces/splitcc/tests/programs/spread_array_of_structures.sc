/* Structures, pointers and global pointers as elements.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

struct s { int a; double d[2]; };
struct s S[2 * PROCS]::;
int *global G[2 * PROCS]::;
int x;

int splitc_main(int argc, char **argv)
{
    int i;
    for_my_1d(i, 2 * PROCS) { S[i].a = i; S[i].d[1] = i / 2.0; G[i] = toglobal(i % PROCS, &x); }
    x = MYPROC;
    barrier();
    for (i = 0; i < 2 * PROCS; i++) { CHECK(S[i].a == i && S[i].d[1] == i / 2.0); CHECK(*G[i] == i % PROCS); }
    { struct s t; t = S[1]; CHECK(t.a == 1); t.a = 50; barrier(); on_one S[1] = t; barrier(); CHECK(S[1].a == 50); }
    DONE();
}
