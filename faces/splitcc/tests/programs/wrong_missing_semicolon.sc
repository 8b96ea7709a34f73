/* A missing semicolon, and a right statement behind it. */
#include <stdio.h>
#include <split-c/split-c.h>
int splitc_main()
{
    int a, b;
    a = 1 /* error: expected ';' after the expression before 'b' */
    b = 2;
    c = 3; /* error: 'c' undeclared */
    return 0;
}
