/* The block of this processor, as programs of the time take it.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    int *spread N = all_spread_malloc(PROCS, 8 * sizeof(int));
    int *mine = (int *)(N + MYPROC);
    int i;
    for (i = 0; i < 8; i++) mine[i] = 10 * MYPROC + i;
    barrier();
    CHECK(*((int *global)(N + NEXT) + 5) == 10 * NEXT + 5);
    CHECK(((int *global)(N + NEXT))[7] == 10 * NEXT + 7);
    CHECK(*(N + NEXT) == 10 * NEXT);
    CHECK(tolocal(N + MYPROC) == mine);
    barrier();
    all_spread_free(N);
    DONE();
}
