/* A procedure at the owner, one at a time.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int total;
void add(int *p, int n) { *p += n; }

int splitc_main(int argc, char **argv)
{
    int i;
    for (i = 0; i < 50; i++) atomic(add, toglobal(0, &total), MYPROC + 1);
    barrier();
    CHECK(*toglobal(0, &total) == 50 * PROCS * (PROCS + 1) / 2);
    DONE();
}
