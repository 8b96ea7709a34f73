/* Bulk transfers of structures with casts as of old.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

typedef struct rec { int a; double b; } rec;

int splitc_main(int argc, char **argv)
{
    rec *spread A;
    rec *mine, got[5];
    int i;
    A = all_spread_malloc(PROCS, 5 * sizeof(rec));
    mine = (rec *)(A + MYPROC);
    for (i = 0; i < 5; i++) { mine[i].a = MYPROC; mine[i].b = i / 4.0; }
    barrier();
    bulk_get(got + 1, (rec *global)(A + NEXT) + 1, 3 * sizeof(rec));
    sync();
    CHECK(got[1].a == NEXT && got[3].b == 0.75);
    barrier();
    all_spread_free(A);
    DONE();
}
