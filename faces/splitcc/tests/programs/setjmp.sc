/* setjmp and longjmp.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

#include <setjmp.h>
jmp_buf env;
int x;
void jump(int n) { longjmp(env, n); }

int splitc_main(int argc, char **argv)
{
    volatile int n = 0;
    int *global p = toglobal(NEXT, &x);
    if (setjmp(env) < 3) { n++; jump(n); }
    CHECK(n == 3 && *p == 0);
    DONE();
}
