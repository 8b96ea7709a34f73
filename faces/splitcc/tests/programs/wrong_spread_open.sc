/* A spread array needs its sizes. */
#include <stdio.h>
#include <split-c/split-c.h>
int x[]::[3]; /* error: a spread array needs the sizes of all its dimensions */
int y[3][]::; /* error: a spread array needs the sizes of all its dimensions */
