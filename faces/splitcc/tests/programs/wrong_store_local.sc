/* A store needs a global place. */
#include <stdio.h>
#include <split-c/split-c.h>
int x;

int splitc_main()
{
    int y;
    y :- 3; /* error: the left side of ':-' must be a global place */
    x :- 4; /* error: the left side of ':-' must be a global place */
    return 0;
}
