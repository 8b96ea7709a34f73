/* bulk_read and bulk_write: destination first.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int here[100];

int splitc_main(int argc, char **argv)
{
    int a[100], i;
    for (i = 0; i < 100; i++) here[i] = i * (MYPROC + 1);
    barrier();
    bulk_read(a, toglobal(NEXT, here), 100 * sizeof(int));
    for (i = 0; i < 100; i++) CHECK(a[i] == i * (NEXT + 1));
    barrier();
    for (i = 0; i < 100; i++) a[i] = -i;
    bulk_write(toglobal(NEXT, here), a, sizeof a);
    barrier();
    for (i = 0; i < 100; i++) CHECK(here[i] == -i);
    bulk_read(a, toglobal(NEXT, here), 0);
    DONE();
}
