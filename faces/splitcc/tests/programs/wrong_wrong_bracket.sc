/* Brackets that do not match. */
#include <stdio.h>
#include <split-c/split-c.h>
int a[4];

int splitc_main()
{
    a[1) = 2; /* error: expected ']' after the index before ')' */
    return 0;
}
