/* No multiplication of global pointers. */
#include <stdio.h>
#include <split-c/split-c.h>
int x;

int splitc_main()
{
    int *global p = toglobal(0, &x);
    p * 2; /* error: no operator '*' */
    p % 2; /* error: no operator '%' */
    -p; /* error: no operator '-' for a global pointer */
    ~p; /* error: no operator '~' for a global pointer */
    p *= 2; /* error: no operator '*=' */
    p & 1; /* error: no operator '&' */
    p << 1; /* error: no operator '<<' */
    return 0;
}
