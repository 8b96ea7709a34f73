/* No spread array in a structure. */
#include <stdio.h>
#include <split-c/split-c.h>
struct s {
    int a[PROCS]::[3]; /* error: a structure cannot hold a spread array */
};
