/* tolocal of a number is the address of this processor that the number says; compilers of the time warned.
 * procs: 1 2
 * output: ok
 */
#include "check.h"

int x;

int splitc_main(int argc, char **argv)
{
    long at = (long)&x;
    int *local = tolocal(at);
    x = 5 + MYPROC;
    CHECK(*local == 5 + MYPROC);
    CHECK(tolocal(at) == (void *)&x);
    DONE();
}
