/* tolocal of a value. */
#include <stdio.h>
#include <split-c/split-c.h>
int A[PROCS]::;
int x;

int splitc_main()
{
    tolocal(A[MYPROC]); /* error: 'tolocal' needs a pointer */
    toproc(&x); /* error: 'toproc' needs a global pointer */
    tolocal(); /* error: 'tolocal' takes 1 arguments, and here are 0 */
    toglobal(&x); /* error: 'toglobal' takes 2 arguments, and here are 1 */
    return 0;
}
