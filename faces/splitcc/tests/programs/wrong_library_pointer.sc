/* An operation of the library has no address. */
#include <stdio.h>
#include <split-c/split-c.h>
void (*f)();

int splitc_main()
{
    f = barrier; /* error: 'barrier' is an operation of Split-C; call it */
    return 0;
}
