/* ++, --, += and -= on global pointers, before and after.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int a[10];

int splitc_main(int argc, char **argv)
{
    int i;
    int *global p, *global q;
    for (i = 0; i < 10; i++) a[i] = i;
    barrier();
    p = toglobal(NEXT, a);
    CHECK(*p++ == 0);
    CHECK(*p == 1);
    CHECK(*++p == 2);
    CHECK(*p-- == 2);
    CHECK(*--p == 0);
    p += 5;
    CHECK(*p == 5);
    p -= 2;
    CHECK(*p == 3);
    q = p++;
    CHECK(q + 1 == p);
    i = 2;
    CHECK(*(p += i) == 6);
    DONE();
}
