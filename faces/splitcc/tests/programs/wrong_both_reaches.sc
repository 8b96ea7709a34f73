/* Global or spread, not both. */
#include <stdio.h>
#include <split-c/split-c.h>
int *global spread p; /* error: a pointer is either global or spread */
