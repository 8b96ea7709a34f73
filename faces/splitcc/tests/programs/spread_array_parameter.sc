/* Spread arrays as parameters, with sizes among the parameters.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int X[PROCS]::[2];
void fill(int v, int w, int q, int r, int A[v][w]::[q][r])
{
    int i, j, k, l;
    for_my_2d(i, j, v, w)
        for (k = 0; k < q; k++) for (l = 0; l < r; l++) A[i][j][k][l] = 1000 * i + 100 * j + 10 * k + l;
}
int old(A, q, r, v, w)
    int A[v][w]::[q][r];
    int q, r, v, w;
{
    return A[v - 1][w - 1][0][0];
}
void one(int n, int A[n]::[2]) { A[MYPROC][1] = MYPROC; }

int splitc_main(int argc, char **argv)
{
    int v = 2, w = PROCS, q = 3, r = 4, i, j;
    int A[v][w]::[q][r];
    fill(v, w, q, r, A);
    barrier();
    for (i = 0; i < v; i++) for (j = 0; j < w; j++) CHECK(A[i][j][2][3] == 1000 * i + 100 * j + 23);
    CHECK(old(A, q, r, v, w) == 1000 * (v - 1) + 100 * (w - 1));
    one(PROCS, X);
    barrier();
    CHECK(X[NEXT][1] == NEXT);
    DONE();
}
