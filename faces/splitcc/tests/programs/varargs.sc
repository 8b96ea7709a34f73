/* Functions with variable arguments, global pointers among them.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

#include <stdarg.h>
int x;
int total(int n, ...) { va_list l; int s = 0; va_start(l, n); while (n-- > 0) s += va_arg(l, int); va_end(l); return s; }
int total_of(int n, ...)
{
    va_list l;
    int s = 0;
    va_start(l, n);
    while (n-- > 0) s += *va_arg(l, int *global);
    va_end(l);
    return s;
}

int splitc_main(int argc, char **argv)
{
    x = 4;
    barrier();
    CHECK(total(3, 1, *toglobal(NEXT, &x), 2) == 7);
    CHECK(total_of(2, toglobal(NEXT, &x), toglobal(0, &x)) == 8);
    DONE();
}
