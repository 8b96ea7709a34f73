/* Arrays of arrays behind a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int a[4][5];

int splitc_main(int argc, char **argv)
{
    int (*global p)[5] = toglobal(NEXT, a);
    int i, j;
    for (i = 0; i < 4; i++) for (j = 0; j < 5; j++) a[i][j] = 100 * MYPROC + 10 * i + j;
    barrier();
    CHECK(p[2][3] == 100 * NEXT + 23);
    CHECK(*(*(p + 1) + 4) == 100 * NEXT + 14);
    CHECK((*p)[2] == 100 * NEXT + 2);
    CHECK(sizeof *p == 5 * sizeof(int));
    DONE();
}
