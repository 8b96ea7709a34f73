/* Sizes with PROCS, sizeof, enumerators and macros.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

#define N 2
enum { K = 3 };
int A[PROCS]::[N * 2];
int B[PROCS * 2]::[sizeof(long)], C[K]::[K + 1];

int splitc_main(int argc, char **argv)
{
    A[MYPROC][N * 2 - 1] = 3;
    B[PROCS * 2 - 1][sizeof(long) - 1] = 4;
    barrier();
    CHECK(A[NEXT][3] == 3 && B[2 * PROCS - 1][7] == 4);
    DONE();
}
