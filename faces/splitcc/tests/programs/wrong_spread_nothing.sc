/* `::` without a dimension on its left. */
#include <stdio.h>
#include <split-c/split-c.h>
int x::; /* error: '::' needs a dimension on its left */
int y::[3]; /* error: '::' needs a dimension on its left */
int z[PROCS]::[3];
