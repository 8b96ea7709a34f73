/* No access to void. */
#include <stdio.h>
#include <split-c/split-c.h>
int x;

int splitc_main()
{
    void *global p = toglobal(0, &x);
    int y = *p; /* error: this global pointer points to void */
    p[1]; /* error: this global pointer points to void */
    return 0;
}
