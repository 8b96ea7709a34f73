/* Two spread pointers cannot be added. */
#include <stdio.h>
#include <split-c/split-c.h>
int splitc_main()
{
    int *spread p = all_spread_malloc(4, 4), *spread q = p;
    int *global g = (int *global)p;
    p = p + q; /* error: two global pointers cannot be added */
    p = g + g; /* error: two global pointers cannot be added */
    g - p; /* error: have no distance */
    p += q; /* error: no operator '+=' */
    return 0;
}
