/* A spread array becomes a spread pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

double a[16]::, b[16]::;
#define POS(array, x, y) array[((y) * 4) + (x)]

int splitc_main(int argc, char **argv)
{
    double *spread now, *spread then;
    int i;
    now = a;
    then = b;
    for_my_1d(i, 16) { now[i] = i; then[i] = -i; }
    barrier();
    CHECK(a[5] == 5 && b[5] == -5);
    CHECK(now == a && then != a);
    { double *spread t = now; now = then; then = t; }
    CHECK(now[3] == -3 && *(a + 3) == 3 && (a + 4) - a == 4);
    CHECK(POS(now, 1, 2) == -9);
    DONE();
}
