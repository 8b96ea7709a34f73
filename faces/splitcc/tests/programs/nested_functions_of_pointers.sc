/* Parameters that are pointers to functions with spread arrays.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int X[PROCS]::[4];
int sum(int n, int A[PROCS]::[n]) { int i, s = 0; for (i = 0; i < n; i++) A[MYPROC][i] = 1; barrier(); for (i = 0; i < PROCS; i++) s += A[i][0] + A[i][1] + A[i][2] + A[i][3]; return s; }
int run(int (*f)(), int n) { return (*f)(n, X); }

int splitc_main(int argc, char **argv)
{
    CHECK(run(sum, 4) == 4 * PROCS);
    DONE();
}
