/* Broadcasts from processor 0.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    int r = 0;
    double d = MYPROC + 0.25;
    on_one r = 17;
    CHECK(all_bcast(r) == 17 && all_bcast_i(MYPROC + 3) == 3 && all_bcast_d(d) == 0.25 && all_bcast_l(MYPROC - 5L) == -5L);
    DONE();
}
