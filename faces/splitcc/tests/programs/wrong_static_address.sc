/* A global address is not known before the start. */
#include <stdio.h>
#include <split-c/split-c.h>
int x;
int *global p = &x; /* error: a global address is not known before the program starts */
int *global q = (int *global)&x; /* error: a global address is not known before the program starts */
int *global z = 0;
int *global n = NULL;
struct { int a; int *global g; } s = { 1, &x }; /* error: a global address is not known before the program starts */
