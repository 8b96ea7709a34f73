/* tolocal of a value. */
#include <stdio.h>
#include <split-c/split-c.h>
int A[PROCS]::;
int x;
double y;

int splitc_main()
{
    tolocal(y); /* error: 'tolocal' needs a pointer */
    toglobal(0, x); /* error: 'toglobal' needs a pointer */
    toproc(&x); /* error: 'toproc' needs a global pointer */
    tolocal(); /* error: 'tolocal' takes 1 arguments, and here are 0 */
    toglobal(&x); /* error: 'toglobal' takes 2 arguments, and here are 1 */
    return 0;
}
