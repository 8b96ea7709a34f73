/* MYPROC, PROCS, PROCSLOG.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    int log = 0;
    while ((2 << log) <= PROCS) log++;
    CHECK(PROCSLOG == log && MYPROC >= 0 && MYPROC < PROCS);
    CHECK(all_reduce_to_all_add(MYPROC) == PROCS * (PROCS - 1) / 2);
    DONE();
}
