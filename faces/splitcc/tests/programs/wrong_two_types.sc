/* Two types in one declaration. */
#include <stdio.h>
#include <split-c/split-c.h>
int double x; /* error: two types in one declaration */
