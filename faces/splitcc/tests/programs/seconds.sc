/* get_seconds goes on.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    double t = get_seconds(), (*clock)(void) = 0;
    int i;
    for (i = 0; i < 3; i++) barrier();
    CHECK(get_seconds() >= t && clock == 0);
    DONE();
}
