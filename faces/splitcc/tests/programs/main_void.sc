/* void splitc_main(void).
 * procs: 1 2 3 4
 * output: 1
 */
#include <stdio.h>
#include <split-c/split-c.h>
void splitc_main(void)
{
    barrier();
    on_one printf("%d\n", PROCS > 0);
}
