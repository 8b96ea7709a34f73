/* A spread array of scalars with static storage.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int A[100]::;

int splitc_main(int argc, char **argv)
{
    int i;
    for_my_1d(i, 100) A[i] = i * i;
    barrier();
    for (i = 0; i < 100; i++) CHECK(A[i] == i * i);
    CHECK(toproc(&A[PROCS + 1]) == 1 % PROCS);
    barrier();
    on_one A[7] += 1;
    barrier();
    CHECK(A[7] == 50);
    DONE();
}
