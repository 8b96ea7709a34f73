/* No spread array of void. */
#include <stdio.h>
#include <split-c/split-c.h>
void x[PROCS]::; /* error: a spread array of void */
