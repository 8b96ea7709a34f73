/* A := between two places of this processor is an assignment.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    int a = 3, b;
    b := a;
    a := b + 4;
    CHECK(b == 3 && a == 7);
    DONE();
}
