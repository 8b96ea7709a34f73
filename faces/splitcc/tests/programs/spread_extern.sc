/* A spread array that is declared before it is defined.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

extern int A[8]::;
int A[8]::;

int splitc_main(int argc, char **argv)
{
    int i;
    for_my_1d(i, 8) A[i] = i + 1;
    barrier();
    CHECK(A[6] == 7);
    DONE();
}
