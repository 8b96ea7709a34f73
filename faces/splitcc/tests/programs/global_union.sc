/* A union behind a global pointer.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

union { int i; float f; unsigned char c[4]; } here;

int splitc_main(int argc, char **argv)
{
    union u { int i; float f; unsigned char c[4]; } *global p = toglobal(LAST, &here);
    on_one p->i = 0x3f800000;
    barrier();
    CHECK(p->f == 1.0f && p->c[3] == 0x3f);
    DONE();
}
