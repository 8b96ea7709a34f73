/* Neither array nor pointer. */
#include <stdio.h>
#include <split-c/split-c.h>
int x; double d;

int splitc_main()
{
    x[1] = 1; /* error: '[ ]' needs an array or a pointer */
    *d = 1; /* error: '*' needs a pointer */
    return 0;
}
