/* A name that was never declared. */
#include <stdio.h>
#include <split-c/split-c.h>
int splitc_main()
{
    int a = b; /* error: 'b' undeclared */
    a = c + 1; /* error: 'c' undeclared */
    return 0;
}
