/* Initialisers with global pointers and global reads.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, &x);
    int a[3] = { 1, *toglobal(MYPROC, &x), 3 };
    struct { int n; int *global q; } s = { 5, &x }, t[2] = { { 1, NULL }, { 2, &x } };
    int *global two[] = { &x, NULL };
    x = 9;
    barrier();
    CHECK(a[1] == 0 && *s.q == 9 && t[0].q == NULL && *t[1].q == 9);
    CHECK(*two[0] == 9 && two[1] == NULL && sizeof two / sizeof two[0] == 2);
    { struct { int n; int *global q; } u = { .q = &x, .n = 1 }; CHECK(*u.q == 9); }
    CHECK(*p == 9);
    DONE();
}
