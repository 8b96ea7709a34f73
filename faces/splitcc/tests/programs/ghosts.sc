/* Ghost cells fetched with gets, as image programs do it.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    int v = 1, w = PROCS, q = 3, r = 3, ii = 0, jj = MYPROC, j;
    int X[v][w]::[q][r], ghostE[3], ghostW[3], (*loc)[r];
    loc = tolocal(X[ii][jj]);
    for (j = 0; j < q; j++) { loc[j][0] = 10 * MYPROC + j; loc[j][r - 1] = 100 * MYPROC + j; }
    barrier();
    if (jj > 0) for (j = 0; j < q; j++) ghostW[j] := X[ii][jj - 1][j][r - 1];
    else for (j = 0; j < q; j++) ghostW[j] = -1;
    if (jj < w - 1) for (j = 0; j < q; j++) ghostE[j] := X[ii][jj + 1][j][0];
    else for (j = 0; j < q; j++) ghostE[j] = -1;
    sync();
    for (j = 0; j < q; j++) {
        CHECK(ghostW[j] == (jj > 0 ? 100 * (MYPROC - 1) + j : -1));
        CHECK(ghostE[j] == (jj < w - 1 ? 10 * (MYPROC + 1) + j : -1));
    }
    barrier();
    DONE();
}
