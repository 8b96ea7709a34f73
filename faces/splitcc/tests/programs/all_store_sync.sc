/* Stores to everybody, ended for all.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int A[PROCS]::[64];

int splitc_main(int argc, char **argv)
{
    int i, round;
    for (round = 0; round < 5; round++) {
        for (i = 0; i < PROCS; i++) A[i][MYPROC] :- 100 * round + MYPROC;
        all_store_sync();
        for (i = 0; i < PROCS; i++) CHECK(A[MYPROC][i] == 100 * round + i);
        barrier();
    }
    DONE();
}
