/* Nor what lies there. */
#include <stdio.h>
#include <split-c/split-c.h>
int X[PROCS]::;
int y = X[0]; /* error: a global access outside of functions */
