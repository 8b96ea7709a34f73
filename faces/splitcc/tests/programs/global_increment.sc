/* ++ and -- of what a global pointer points to.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(LAST, &x);
    on_one {
        *p = 3;
        CHECK((*p)++ == 3);
        CHECK(++*p == 5);
        CHECK((*p)-- == 5);
        CHECK(--(*p) == 3);
        p[0]++;
        CHECK(p[0] == 4);
    }
    DONE();
}
