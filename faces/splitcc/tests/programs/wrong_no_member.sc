/* A field that is not there. */
#include <stdio.h>
#include <split-c/split-c.h>
struct s { int a; } s;

int splitc_main()
{
    struct s *global p = toglobal(0, &s);
    p->b = 1; /* error: has no member named 'b' */
    s.c = 1; /* error: has no member named 'c' */
    return 0;
}
