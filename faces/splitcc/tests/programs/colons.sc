/* `? :-` and labels beside the operators of Split-C.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;

int splitc_main(int argc, char **argv)
{
    int a = 3, b, *global p = toglobal(MYPROC, &x);
    b = a > 2 ? 1 :-1;
    CHECK(b == 1);
    b = a > 5 ? 1:-1;
    CHECK(b == -1);
    *p :- a > 2 ? 7 : 8;
    all_store_sync();
    CHECK(x == 7);
    *p := a ? b : a;
    sync();
    CHECK(x == -1);
    switch (a) { case 3:-b; break; default:b = 0; }
    goto label;
    label:-a;
    CHECK(b == -1);
    a := (b ? 5 : 6);
    CHECK(a == 5);
    DONE();
}
