/* A string that does not end. */
#include <stdio.h>
#include <split-c/split-c.h>
char *s = "abc; /* error: missing terminating */
int b;
