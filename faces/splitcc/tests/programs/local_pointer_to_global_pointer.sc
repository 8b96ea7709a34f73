/* A local pointer to a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int a[5];

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, a);
    int *global *lp = &p;
    int i;
    for (i = 0; i < 5; i++) a[i] = i + MYPROC;
    barrier();
    CHECK(**lp == NEXT);
    (*lp)++;
    CHECK(**lp == NEXT + 1);
    *lp += 2;
    CHECK(*(*lp)++ == NEXT + 3);
    CHECK(*p == NEXT + 4);
    DONE();
}
