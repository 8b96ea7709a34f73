/* Enumerations and _Bool through global pointers.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

enum color { red, green = 5, blue };
enum color c;
_Bool b;

int splitc_main(int argc, char **argv)
{
    enum color *global p = toglobal(LAST, &c);
    _Bool *global q = toglobal(LAST, &b);
    on_one { *p = green; *q = 5; }
    barrier();
    CHECK(*p == green && *q == 1);
    DONE();
}
