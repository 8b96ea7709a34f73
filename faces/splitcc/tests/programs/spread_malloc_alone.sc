/* spread_malloc by one processor.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    int *spread p;
    on_one {
        p = spread_malloc(2 * PROCS, sizeof(int));
        CHECK(p != NULL && toproc(p) == 0);
        p[PROCS] = 4;
        CHECK(p[PROCS] == 4 && toproc(&p[LAST]) == LAST);
        spread_free(p);
    }
    DONE();
}
