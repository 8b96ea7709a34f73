/* A global pointer as a floating number or a structure. */
#include <stdio.h>
#include <split-c/split-c.h>
int x; struct s { int a; } s;

int splitc_main()
{
    int *global p = toglobal(0, &x);
    double d = p; /* error: cannot initialize a global pointer as this type */
    d = (double)p; /* error: a global pointer cannot be cast to 'double' */
    p = (int *global)1.5; /* error: 'double' cannot be cast to a global pointer */
    p = 2.5; /* error: cannot assign this as a global pointer */
    s = p; /* error: cannot assign a global pointer as this type */
    return 0;
}
