/* A point where an arrow belongs, and the other way round. */
#include <stdio.h>
#include <split-c/split-c.h>
struct s { int a; } s;

int splitc_main()
{
    struct s *global p = toglobal(0, &s);
    p.a = 1; /* error: write '->' */
    s->a = 1; /* error: write '.' */
    return 0;
}
