/* Operations with the wrong number of arguments. */
#include <stdio.h>
#include <split-c/split-c.h>
int a[4];

int splitc_main()
{
    bulk_read(a, toglobal(0, a)); /* error: 'bulk_read' takes 3 arguments, and here are 2 */
    barrier(1); /* error: 'barrier' takes 0 arguments, and here are 1 */
    bulk_write(3, a, 4);
    bulk_store(a, toglobal(0, a), 4); /* error: cannot pass a global pointer as a local one */
    return 0;
}
