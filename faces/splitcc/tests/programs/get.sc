/* A get is there after sync.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x, y[5], z[20];

int splitc_main(int argc, char **argv)
{
    int a, b, i, v[20];
    x = 5 + MYPROC; y[3] = 9;
    for (i = 0; i < 20; i++) z[i] = i + MYPROC;
    barrier();
    a := *toglobal(NEXT, &x);
    b := toglobal(NEXT, y)[3];
    for (i = 0; i < 20; i++) v[i] := *(toglobal(NEXT, z) + i);
    sync();
    CHECK(a == 5 + NEXT && b == 9);
    for (i = 0; i < 20; i++) CHECK(v[i] == i + NEXT);
    CHECK(is_sync());
    DONE();
}
