/* splitc_main with three parameters.
 * procs: 1 2 3 4
 * output: 1
 */
#include <stdio.h>
#include <split-c/split-c.h>
int splitc_main(int argc, char *argv[], char *envp[])
{
    on_one printf("%d\n", argc == 1 && envp != 0 && argv[1] == 0);
    return 0;
}
