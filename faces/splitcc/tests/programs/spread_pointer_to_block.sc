/* A spread pointer to arrays stands for a spread array.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int total(int n, int q, int r, int A[n]::[q][r])
{
    int i, s = 0;
    for (i = 0; i < n; i++) s += A[i][q - 1][r - 1];
    return s;
}

int splitc_main(int argc, char **argv)
{
    int q = 3, r = 2, i;
    int (*spread S)[q][r];
    int *spread flat;
    S = all_spread_malloc(PROCS, q * r * sizeof(int));
    CHECK(S != NULL);
    for (i = 0; i < q * r; i++) S[MYPROC][i / r][i % r] = 10 * MYPROC + i;
    barrier();
    CHECK(S[NEXT][2][1] == 10 * NEXT + 5);
    CHECK(total(PROCS, q, r, S) == 10 * PROCS * (PROCS - 1) / 2 + 5 * PROCS);
    flat = (int *spread)S;
    CHECK(*((int *global)(flat + NEXT) + 1) == 10 * NEXT + 1);
    barrier();
    all_spread_free(S);
    DONE();
}
