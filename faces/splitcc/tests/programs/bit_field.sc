/* Bit-fields behind a global pointer, and their neighbours.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

typedef struct { int a : 3; unsigned b : 9, c : 1; int d; } flags;
flags f;

int splitc_main(int argc, char **argv)
{
    flags *global p = toglobal(LAST, &f);
    on_one {
        p->a = -2; p->b = 300; p->c = 1; p->d = 7;
        CHECK(p->a == -2 && p->b == 300 && p->c == 1 && p->d == 7);
        p->b += 5;
        CHECK(p->b++ == 305 && ++p->b == 307 && p->b-- == 307);
        p->c = 0;
        CHECK(p->a == -2 && p->b == 306 && p->c == 0 && p->d == 7);
    }
    DONE();
}
