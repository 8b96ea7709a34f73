/* void *global as a parameter and back.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int x;
int as_int(void *global p) { return *(int *global)p; }
int is_null(void *global p) { return p == NULL; }

int splitc_main(int argc, char **argv)
{
    int v;
    x = MYPROC + 2;
    barrier();
    v = as_int(toglobal(NEXT, &x));
    CHECK(v == NEXT + 2);
    CHECK(is_null(NULL) && !is_null(toglobal(0, &x)));
    DONE();
}
