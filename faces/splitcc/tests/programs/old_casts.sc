/* Casts of local pointers as places, as old compilers took them.
 * procs: 1 2
 * output: ok
 */
#include "check.h"

struct s { int *p; } s;

int splitc_main(int argc, char **argv)
{
    int a[4] = { 1, 2, 3, 4 }, *p = a;
    char *c;

    ((char *)p)++;
    (char *)p += 3;
    CHECK(p == a + 1);
    (char *)s.p = (char *)a;
    CHECK(s.p == a && *((int *)s.p)++ == 1 && s.p == a + 1);
    (int *)c = a + 2;
    CHECK(*(int *)c == 3);
    DONE();
}
