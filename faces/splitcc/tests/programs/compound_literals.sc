/* Compound literals and designated initialisers.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

typedef struct { int a, b; } pair;
pair here;

int splitc_main(int argc, char **argv)
{
    pair *global p = toglobal(NEXT, &here);
    *p = (pair){ .b = 3, .a = MYPROC };
    barrier();
    CHECK(here.b == 3);
    p->a = ((int[]){ 5, *toglobal(MYPROC, &here.b), 7 })[1];
    CHECK(p->a == 3);
    DONE();
}
