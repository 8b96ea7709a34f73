/* A pointer is no index. */
#include <stdio.h>
#include <split-c/split-c.h>
int x, a[3];

int splitc_main()
{
    int *global p = toglobal(0, &x);
    a[p] = 1; /* error: an index must be an integer */
    a[1.5] = 1; /* error: an index must be an integer */
    return 0;
}
