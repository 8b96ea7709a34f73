/* A spread array of variable size in a function.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int sum(int q)
{
    int A[PROCS]::[q];
    int i, s = 0;
    for (i = 0; i < q; i++) A[MYPROC][i] = 1;
    barrier();
    for (i = 0; i < PROCS * q; i++) s += A[i % PROCS][i / PROCS];
    barrier();
    return s;
}

int splitc_main(int argc, char **argv)
{
    int n = 3 + PROCS, i;
    {
        double u[PROCS]::[n], w[n]::;
        for (i = 0; i < n; i++) u[MYPROC][i] = MYPROC + i / 8.0;
        for_my_1d(i, n) w[i] = i;
        barrier();
        for (i = 0; i < n; i++) { CHECK(u[NEXT][i] == NEXT + i / 8.0); CHECK(w[i] == i); }
        barrier();
    }
    for (i = 0; i < 5; i++) CHECK(sum(i + 1) == PROCS * (i + 1));
    DONE();
}
