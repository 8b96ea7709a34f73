/* A bit-field is not stored or put. */
#include <stdio.h>
#include <split-c/split-c.h>
struct s { int a : 3; } s;

int splitc_main()
{
    struct s *global p = toglobal(0, &s);
    p->a :- 1; /* error: a bit-field cannot be stored */
    p->a := 1; /* error: a bit-field cannot be put */
    p->a = 1;
    return 0;
}
