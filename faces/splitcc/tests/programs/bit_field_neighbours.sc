/* Two processors change fields that lie in different bytes of one word.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

typedef struct { unsigned low : 8, high : 8, rest : 16; } pair;
pair f;

int splitc_main(int argc, char **argv)
{
    pair *global p = toglobal(0, &f);
    int i;
    for (i = 0; i < 2000; i++) { if (MYPROC == 0) p->low = i & 255; if (MYPROC == LAST) p->high = (i * 3) & 255; }
    barrier();
    CHECK(PROCS == 1 || (p->low == (1999 & 255) && p->high == ((1999 * 3) & 255)));
    DONE();
}
