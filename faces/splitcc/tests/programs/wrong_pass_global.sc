/* Nor as an argument. */
#include <stdio.h>
#include <split-c/split-c.h>
int x;
void f(int *p);

int splitc_main()
{
    f(toglobal(0, &x)); /* error: cannot pass a global pointer as a local one */
    return 0;
}
