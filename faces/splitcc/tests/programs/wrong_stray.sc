/* Characters that do not belong in a program. */
#include <stdio.h>
#include <split-c/split-c.h>
int a @; /* error: stray '@' in program */
int b;
