/* A local array is no spread array. */
#include <stdio.h>
#include <split-c/split-c.h>
int a[4];
void f(int X[PROCS]::[4]);

int splitc_main()
{
    f(3.5); /* error: cannot pass this as a global pointer */
    return 0;
}
