/* ++, --, += and comparisons of spread pointers.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    int *spread p = all_spread_malloc(2 * PROCS + 2, sizeof(int)), *spread q;
    int i;
    on_one for (i = 0; i < 2 * PROCS + 2; i++) p[i] = i * 3;
    barrier();
    q = p;
    for (i = 0; i < PROCS + 1; i++) CHECK(*q++ == i * 3);
    CHECK(q - p == PROCS + 1 && q > p && p < q && p <= p && q >= q);
    q -= 2;
    CHECK(*q == 3 * (PROCS - 1));
    CHECK(*--q == 3 * (PROCS - 2) || PROCS == 1);
    q = p + 2 * PROCS;
    q++;
    CHECK(*q == 3 * (2 * PROCS + 1));
    CHECK(p == p && p != q && p != NULL);
    barrier();
    all_spread_free(p);
    DONE();
}
