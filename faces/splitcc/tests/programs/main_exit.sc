/* A program may end by exit on every processor.
 * procs: 1 2 3 4
 * output: bye
 */
#include <stdio.h>
#include <stdlib.h>
#include <split-c/split-c.h>

splitc_main()
{
    barrier();
    on_one printf("bye\n");
    exit(0);
}
