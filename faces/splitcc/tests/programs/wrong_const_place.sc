/* A const place is not written. */
#include <stdio.h>
#include <split-c/split-c.h>
int x;

int splitc_main()
{
    const int *global p = toglobal(0, &x);
    *p = 3; /* error: the place on the left is const */
    *p := 3; /* error: the place on the left is const */
    (*p)++; /* error: the place on the left is const */
    return 0;
}
