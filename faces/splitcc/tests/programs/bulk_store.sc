/* bulk_store is counted by bytes.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int here[1000];

int splitc_main(int argc, char **argv)
{
    int a[1000], i, round;
    for (round = 0; round < 3; round++) {
        for (i = 0; i < 1000; i++) a[i] = i * round + MYPROC;
        bulk_store(toglobal(NEXT, here), a, sizeof a);
        store_sync(sizeof a);
        for (i = 0; i < 1000; i++) CHECK(here[i] == i * round + (MYPROC + PROCS - 1) % PROCS);
        barrier();
    }
    DONE();
}
