/* Characters of strings behind global pointers.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

char text[20];

int splitc_main(int argc, char **argv)
{
    char *global p;
    int n = 0;
    strcpy(text, "hello");
    barrier();
    for (p = toglobal(NEXT, text); *p != '\0'; p++) n += *p == 'l';
    CHECK(n == 2);
    p = toglobal(NEXT, text);
    barrier();
    p[0] = 'J';
    barrier();
    CHECK(strcmp(text, "Jello") == 0);
    DONE();
}
