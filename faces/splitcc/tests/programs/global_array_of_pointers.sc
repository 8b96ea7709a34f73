/* Arrays of global pointers.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
int *global q[3];

int splitc_main(int argc, char **argv)
{
    int *global p[64];
    int i;
    x = MYPROC * MYPROC;
    barrier();
    for (i = 0; i < PROCS; i++) p[i] = toglobal(i, &x);
    for (i = 0; i < PROCS; i++) CHECK(*p[i] == i * i);
    q[1] = p[LAST];
    CHECK(*q[1] == LAST * LAST);
    q[1]++;
    CHECK(q[1] - p[LAST] == 1);
    DONE();
}
