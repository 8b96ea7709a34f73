/* on_one and on_proc with statements, blocks and else.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    int a = 0, b = 0;
    on_one a = 1;
    on_one { a++; b = 1; }
    on_proc(LAST) b += 2;
    if (PROCS > 0)
        on_proc(0) a++;
    CHECK(a == (MYPROC == 0 ? 3 : 0));
    CHECK(b == (MYPROC == 0) + 2 * (MYPROC == LAST));
    DONE();
}
