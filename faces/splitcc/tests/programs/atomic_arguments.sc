/* Arguments of all kinds: structures, doubles, pointers, global pointers.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

typedef struct { int a; double d; } pair;
pair here;
int mark, small;
char kept;
int *global reply;
void put(pair *p, pair q, double more, char c, int *global where, short s)
{
    *p = q; p->d += more; kept = c; reply = where; small = s;
}

int splitc_main(int argc, char **argv)
{
    pair t;
    int *global back = toglobal(MYPROC, &mark);
    t.a = 3; t.d = 1.5;
    atomic(put, toglobal(NEXT, &here), t, 2.5, 'x', back, (short)7);
    barrier();
    CHECK(here.a == 3 && here.d == 4.0 && kept == 'x' && small == 7);
    CHECK(toproc(reply) == (MYPROC + PROCS - 1) % PROCS);
    *reply = 99;
    barrier();
    CHECK(mark == 99);
    DONE();
}
