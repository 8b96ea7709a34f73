/* A bit-field has no address. */
#include <stdio.h>
#include <split-c/split-c.h>
struct s { int a : 3; } s;

int splitc_main()
{
    void *global q = &toglobal(0, &s)->a; /* error: a bit-field has no address */
    return 0;
}
