/* Global places in the heads of loops.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int a[6];

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(MYPROC, a), *global q;
    int i, n = 0;
    for (i = 0; i < 5; i++) a[i] = 5 - i;
    for (q = p; *q; q++) n += *q;
    CHECK(n == 15 && q - p == 5);
    do n--; while (n > *p);
    CHECK(n == 5);
    while ((*p)-- > 1) n++;
    CHECK(n == 9 && *p == 0);
    for (;;) { if (p[4]++ > 3) break; }
    CHECK(a[4] == 5);
    DONE();
}
