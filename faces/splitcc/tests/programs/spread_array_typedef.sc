/* A name for the type of a spread array.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

typedef int matrix[PROCS]::[4];
matrix M;
void fill(matrix m) { m[MYPROC][0] = 77; }

int splitc_main(int argc, char **argv)
{
    matrix L;
    int i;
    for (i = 0; i < 4; i++) { M[MYPROC][i] = i; L[MYPROC][i] = -i; }
    barrier();
    CHECK(M[NEXT][3] == 3 && L[NEXT][3] == -3);
    barrier();
    fill(M);
    barrier();
    CHECK(M[NEXT][0] == 77);
    DONE();
}
