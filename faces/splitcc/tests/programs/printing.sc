/* Expressions with global places as arguments of printf.
 * procs: 1 2 3 4
 * output: 42  2.50 b
 * output: 0
 * output: ok
 */
#include "check.h"

int x;
double d;
char name[40];

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, &x);
    x = 41;
    d = 2.5;
    strcpy(name, "abc");
    barrier();
    on_one {
        printf("%d %5.2f %c\n", *p + 1, *toglobal(NEXT, &d), toglobal(NEXT, name)[1]);
        printf("%d\n", p == NULL);
        sprintf(name, "%p", (void *)p);
        CHECK(strlen(name) > 2);
    }
    DONE();
}
