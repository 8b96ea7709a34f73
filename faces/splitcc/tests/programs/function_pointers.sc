/* Global pointers in types of functions.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
int add(int *global p, int n) { return *p + n; }
int apply(int (*f)(int *global, int), int *global p) { return f(p, 2); }

int splitc_main(int argc, char **argv)
{
    int (*f)(int *global, int) = add;
    struct table { int (*g)(int *global, int); } t;
    x = 5;
    barrier();
    CHECK(f(toglobal(NEXT, &x), 3) == 8);
    CHECK((*f)(toglobal(NEXT, &x), 4) == 9);
    t.g = add;
    CHECK(t.g(toglobal(NEXT, &x), 1) == 6);
    CHECK(apply(add, toglobal(NEXT, &x)) == 7);
    DONE();
}
