/* splitc_main() without anything.
 * procs: 1 2 3 4
 * output: hello
 */
#include <stdio.h>
#include <split-c/split-c.h>
splitc_main()
{
    int x;
    on_one { printf("hello\n"); fflush(stdout); }
    return;
}
