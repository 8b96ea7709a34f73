/* splitc_main without a type, K&R.
 * procs: 1 2 3 4
 * output: 1
 */
#include <stdio.h>
#include <split-c/split-c.h>
splitc_main(argc, argv)
int argc;
char **argv;
{
    on_one printf("%d\n", argc);
}
