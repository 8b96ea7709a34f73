/* bulk_get and bulk_put are ended by sync.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

double X[PROCS]::[300];

int splitc_main(int argc, char **argv)
{
    double a[300], b[300];
    int i;
    for (i = 0; i < 300; i++) { X[MYPROC][i] = i + MYPROC * 1000; b[i] = -i - MYPROC; }
    barrier();
    bulk_get(a, &X[NEXT][0], 150 * sizeof(double));
    bulk_get(a + 150, &X[NEXT][150], 150 * sizeof(double));
    sync();
    for (i = 0; i < 300; i++) CHECK(a[i] == i + NEXT * 1000);
    barrier();
    bulk_put(X[NEXT], b, sizeof b);
    sync();
    barrier();
    for (i = 0; i < 300; i++) CHECK(X[MYPROC][i] == -i - (MYPROC + PROCS - 1) % PROCS);
    DONE();
}
