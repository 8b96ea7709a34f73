/* A block on each processor.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int X[PROCS]::[10];

int splitc_main(int argc, char **argv)
{
    int i;
    int *mine = tolocal(X[MYPROC]);
    for (i = 0; i < 10; i++) mine[i] = MYPROC * 100 + i;
    barrier();
    for (i = 0; i < 10; i++) CHECK(X[NEXT][i] == NEXT * 100 + i);
    CHECK(&X[MYPROC][3] == toglobal(MYPROC, mine + 3));
    CHECK(*X[NEXT] == NEXT * 100 && *(X[NEXT] + 4) == NEXT * 100 + 4);
    DONE();
}
