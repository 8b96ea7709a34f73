/* A block that is never closed. */
#include <stdio.h>
#include <split-c/split-c.h>
int f()
{
    int a;
    if (a) {
    return 0;
}
/* the end */ /* error-at-end: the file ends within a block */
