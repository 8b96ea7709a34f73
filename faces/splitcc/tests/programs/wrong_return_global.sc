/* Nor as a result. */
#include <stdio.h>
#include <split-c/split-c.h>
int x;
int *f(int *global p)
{
    return p; /* error: cannot return a global pointer as a local one */
}
