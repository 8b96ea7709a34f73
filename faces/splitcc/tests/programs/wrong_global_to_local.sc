/* A global pointer does not become a local one by itself. */
#include <stdio.h>
#include <split-c/split-c.h>
int x;

int splitc_main()
{
    int *global p = toglobal(0, &x);
    int *q = p; /* error: cannot initialize a global pointer as a local one; cast it */
    q = p; /* error: cannot assign a global pointer as a local one; cast it */
    q = (int *)p;
    return 0;
}
