/* Arithmetic on a spread pointer to void. */
#include <stdio.h>
#include <split-c/split-c.h>
int splitc_main()
{
    void *spread p = all_spread_malloc(4, 4);
    p++; /* error: arithmetic on a spread pointer to void */
    p = p + 1; /* error: arithmetic on a spread pointer to void */
    return 0;
}
