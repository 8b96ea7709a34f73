/* Structures and fields are stored.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

typedef struct { int a; double b; } pair;
pair here;

int splitc_main(int argc, char **argv)
{
    pair t;
    pair *global p = toglobal(NEXT, &here);
    t.a = MYPROC; t.b = 2.5;
    *p :- t;
    all_store_sync();
    CHECK(here.a == (MYPROC + PROCS - 1) % PROCS && here.b == 2.5);
    barrier();
    p->b :- 4.5;
    store_sync(sizeof(double));
    CHECK(here.b == 4.5);
    DONE();
}
