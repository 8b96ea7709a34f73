/* Fields of unnamed structures and unions inside.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

struct s { int a; union { int x; int y; }; struct { int z[2]; }; };
struct s here;

int splitc_main(int argc, char **argv)
{
    struct s *global p = toglobal(LAST, &here);
    on_one { p->a = 3; p->y = 4; p->z[1] = 5; }
    barrier();
    CHECK(p->a == 3 && p->y == 4 && p->z[1] == 5);
    DONE();
}
