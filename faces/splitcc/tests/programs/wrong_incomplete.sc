/* A structure that is not defined. */
#include <stdio.h>
#include <split-c/split-c.h>
struct t;
struct t *global g;

int splitc_main()
{
    g->a = 1; /* error: 'struct t' is not defined here */
    return 0;
}
