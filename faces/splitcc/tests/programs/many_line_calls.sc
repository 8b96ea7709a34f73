/* Calls over several lines keep their lines.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
int here(int a, int *p, int line) { return line + a - *p; }

int splitc_main(int argc, char **argv)
{
    int line = here(*toglobal(NEXT, &x),
                    &x,
                    __LINE__);
    CHECK(line == __LINE__ - 3 || line == __LINE__ - 2 || line == __LINE__ - 1);
    DONE();
}
