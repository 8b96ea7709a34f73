/* A static spread array in a function keeps its values.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int count(void)
{
    static int C[PROCS]::[2];
    return ++C[MYPROC][1];
}

int splitc_main(int argc, char **argv)
{
    int i;
    for (i = 0; i < 3; i++) CHECK(count() == i + 1);
    DONE();
}
