/* A spread array has no initialiser. */
#include <stdio.h>
#include <split-c/split-c.h>
int a[4]:: = { 1, 2, 3, 4 }; /* error: the spread array 'a' cannot have an initializer */
