/* Large switches with accesses in their cases.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, &x);
    int i, n = 0;
    x = 3;
    barrier();
    for (i = 0; i < 6; i++)
        switch (*p + i) {
        case 3: n += *p; break;
        case 4: case 5: n += 100; /* falls through */
        case 6 ... 7: { int t = *p; n += t; } break;
        default: n += 10000;
        }
    CHECK(n == 3 + 103 + 103 + 3 + 3 + 10000);
    DONE();
}
