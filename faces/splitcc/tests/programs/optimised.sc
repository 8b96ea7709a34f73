/* The same with -O2: places that change are read again.
 * procs: 1 2 3 4
 * options: -O2
 * output: ok
 */
#include "check.h"

int flag, seen;

int splitc_main(int argc, char **argv)
{
    int i, *global p = toglobal(LAST, &flag);
    if (MYPROC == LAST) { for (i = 0; i < 1000; i++) toglobal(0, &seen)[0] = i; *toglobal(0, &flag) = 1; }
    on_one { p = toglobal(0, &flag); while (!*p) ; CHECK(*toglobal(0, &seen) == 999); }
    DONE();
}
