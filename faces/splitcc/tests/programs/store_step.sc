/* A store through a pointer that steps: *(p++) :- v.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int a[8];

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, a);
    int i;
    for (i = 0; i < 8; i++) *(p++) :- i + MYPROC;
    all_store_sync();
    for (i = 0; i < 8; i++) CHECK(a[i] == i + (MYPROC + PROCS - 1) % PROCS);
    CHECK(p - toglobal(NEXT, a) == 8);
    DONE();
}
