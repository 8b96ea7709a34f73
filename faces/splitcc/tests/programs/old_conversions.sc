/* K&R definitions convert local pointers to global ones; declarations beside those of the library stay.
 * procs: 1 2 3
 * output: ok
 */
#include "check.h"

double get_seconds(), atof(), half();
int x;

look(p, d, n)
    int *global p;
    double d;
{
    return *p + (int)d + n;
}

double half(d) float d; { return d / 2; }

int splitc_main(int argc, char **argv)
{
    double t = get_seconds();
    x = 3;
    CHECK(look(&x, 2.0, 1) == 6);
    CHECK(look(toglobal(MYPROC, &x), 2.5, 0) == 5);
    CHECK(atof("1.5") == 1.5 && half(3.0) == 1.5 && get_seconds() >= t);
    DONE();
}
