/* extern inline, static inline and inline, with and without optimisation.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
extern inline int one(int *global p) { return *p; }
static inline int two(int n) { return 2 * n; }
inline int three(int n) { return 3 * n; }

int splitc_main(int argc, char **argv)
{
    x = 8;
    barrier();
    CHECK(one(toglobal(NEXT, &x)) == 8 && two(3) == 6 && three(3) == 9);
    DONE();
}
