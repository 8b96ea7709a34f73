/* Arrays are not assigned. */
#include <stdio.h>
#include <split-c/split-c.h>
int a[4];
int X[PROCS]::[4];

int splitc_main()
{
    int (*global p)[4] = toglobal(0, &a);
    *p = 0; /* error: an array cannot be assigned */
    X[1] = 0; /* error: an array cannot be assigned */
    return 0;
}
