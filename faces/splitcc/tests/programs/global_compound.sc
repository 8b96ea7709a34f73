/* Compound assignments through a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x; double y;

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(LAST, &x);
    double *global d = toglobal(LAST, &y);
    on_one {
        *p = 10; *p += 5; *p -= 3; *p *= 4; *p /= 3; *p %= 9;
        CHECK(*p == 7);
        *p <<= 3; *p >>= 1; *p |= 3; *p &= 30; *p ^= 1;
        CHECK(*p == ((((7 << 3) >> 1 | 3) & 30) ^ 1));
        *d = 1.5; *d *= 3; *d += 1;
        CHECK(*d == 5.5);
        CHECK((*p = 4) == 4);
        CHECK((*p += 3) == 7);
    }
    DONE();
}
