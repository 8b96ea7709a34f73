/* A value cannot be the left side of :=. */
#include <stdio.h>
#include <split-c/split-c.h>
int x;

int splitc_main()
{
    int y;
    y + 1 := x; /* error: the left side of ':=' is no place */
    return 0;
}
