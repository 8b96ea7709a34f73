/* Structures as results of functions and of atomic procedures.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

typedef struct { int a, b; } pair;
int x;
pair make(int n) { pair p; p.a = n; p.b = -n; return p; }
pair look(int *p, int n) { pair q; q.a = *p; q.b = n; return q; }

int splitc_main(int argc, char **argv)
{
    pair p = make(3);
    x = 5 + MYPROC;
    barrier();
    p = atomic(look, toglobal(NEXT, &x), 2);
    CHECK(p.a == 5 + NEXT && p.b == 2 && make(*toglobal(NEXT, &x)).a == 5 + NEXT);
    DONE();
}
