/* Local spread arrays are freed when their scope is left: by return, break, continue and goto.
 * procs: 1 2 4
 * output: ok
 */
#include "check.h"

int leave(int how)
{
    int i;
    for (i = 0; i < 2; i++) {
        int A[PROCS]::[4000];
        A[MYPROC][3999] = how;
        if (how == 0) continue;
        if (how == 1) break;
        if (how == 2) return A[MYPROC][3999];
        if (how == 3) goto out;
    }
out:
    return how;
}

int splitc_main(int argc, char **argv)
{
    int i;
    for (i = 0; i < 2000; i++) CHECK(leave(i % 4) == i % 4);
    DONE();
}
