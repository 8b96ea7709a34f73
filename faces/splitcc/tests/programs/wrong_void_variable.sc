/* A variable of type void. */
#include <stdio.h>
#include <split-c/split-c.h>
void x; /* error: 'x' is declared void */
int f() { void y; return 0; } /* error: 'y' is declared void */
