/* Comparisons of global pointers, with null and with 0.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int a[4];

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, a), *global q = p + 1, *global z = 0;
    CHECK(p == p);
    CHECK(p != q);
    CHECK(p < q && q > p && p <= q && q >= p);
    CHECK(z == NULL && z == 0 && !z);
    CHECK(p != NULL && p != 0);
    CHECK(p ? 1 : 0);
    if (z) CHECK(0);
    while (z) { CHECK(0); break; }
    CHECK((p && 1) && !(z || 0));
    z = NULL;
    CHECK(z == (int *global)0);
    DONE();
}
