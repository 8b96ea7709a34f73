/* Local variables can be read by others.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int *global where[PROCS]::;

int splitc_main(int argc, char **argv)
{
    int mine = 30 + MYPROC;
    where[MYPROC] = &mine;
    barrier();
    CHECK(*where[NEXT] == 30 + NEXT);
    *where[NEXT] = 5;
    barrier();
    CHECK(mine == 5);
    DONE();
}
