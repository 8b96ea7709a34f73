/* A function is not called through a global pointer. */
#include <stdio.h>
#include <split-c/split-c.h>
int f(int n) { return n; }

int splitc_main()
{
    int (*global p)(int) = toglobal(0, f);
    p(3); /* error: a function cannot be called through a global pointer */
    return 0;
}
