/* Accesses that depend on each other stay in their order.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int a[8], flag;
int bump(void) { return ++flag; }

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(MYPROC, a), *global f = toglobal(MYPROC, &flag);
    int list[8], other[8], *pointer = list, i, t;
    for (i = 0; i < 8; i++) a[i] = i;
    /* The array is what the pointer reads. */
    p = toglobal(MYPROC, list);
    for (i = 0; i < 8; i++) list[i] = i;
    for (i = 1; i < 8; i++) pointer[i] = p[i - 1];
    for (i = 0; i < 8; i++) CHECK(list[i] == 0);
    for (i = 0; i < 8; i++) list[i] = i;
    for (i = 1; i < 8; i++) list[i] = p[i - 1];
    for (i = 0; i < 8; i++) CHECK(list[i] == 0);
    /* A call in the middle, a condition, a step of the pointer itself. */
    flag = 1;
    t = *f + bump() + *f * 0;
    CHECK(flag == 2);
    t = *f > 5 ? *f : *f + 1;
    CHECK(t == 3);
    p = toglobal(MYPROC, a);
    for (i = 0; i < 8; i++) other[i] = *p++;
    CHECK(other[7] == 7 && p - toglobal(MYPROC, a) == 8);
    p = toglobal(MYPROC, a);
    for (i = 0; i < 7; p++, i++) p[0] = i;
    CHECK(a[6] == 6);
    for (i = 0; i < a[7]; i++) other[i] = a[i];
    CHECK(other[3] == 3);
    DONE();
}
