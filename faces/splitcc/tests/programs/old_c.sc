/* K&R definitions, implicit int and functions that were never declared.
 * procs: 1 2 3 4
 * output: 7 6.0 two
 */
#include <split-c/split-c.h>
static counter;
extern double atof();
char *strcpy();
add(a, b) { return a + b; }
double scale(x, by)
    double x;
    float by;
{
    register i;
    for (i = 0; i < 2; i++) x *= by;
    return x;
}
char *second(list) char *list[]; { return list[1]; }
splitc_main()
{
    auto n = 3;
    char *words[2], buffer[10];
    words[1] = strcpy(buffer, "two");
    counter = add(n, 4);
    on_one printf("%d %.1f %s\n", counter, scale(1.5, 2.0), second(words));
    return 0;
}
