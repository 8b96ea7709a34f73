/* A store right after all_store_sync counts for the next store_sync of its target, and reset_store_sync forgets.
 * procs: 2 3
 * output: ok
 */
#include "check.h"

int box[PROCS]::[2];

int splitc_main(int argc, char **argv)
{
    int round, next = (MYPROC + 1) % PROCS;
    for (round = 0; round < 200; round++) {
        all_store_sync();
        box[next][0] :- round;
        store_sync(sizeof(int));
        CHECK(box[MYPROC][0] == round);
    }
    box[next][1] :- 7;
    barrier();
    all_store_sync();
    reset_store_sync();
    barrier();
    box[next][1] :- 8;
    store_sync(sizeof(int));
    CHECK(box[MYPROC][1] == 8);
    DONE();
}
