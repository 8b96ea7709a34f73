/* Arrays of variable size of C, and pointers to them.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    int q = 3, r = 4, i, j;
    int tag[PROCS], (*loc)[r];
    int A[PROCS]::[q][r];
    loc = tolocal(A[MYPROC]);
    for (i = 0; i < q; i++) for (j = 0; j < r; j++) loc[i][j] = MYPROC * 100 + i * 10 + j;
    for (i = 0; i < PROCS; i++) tag[i] = i;
    barrier();
    CHECK(A[NEXT][2][3] == NEXT * 100 + 23 && tag[LAST] == LAST && sizeof *loc == 16);
    barrier();
    DONE();
}
