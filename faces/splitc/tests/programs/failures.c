/* Programs that do something wrong, by name. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "splitc.h"

static long word;

static int program(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int last = PROCS - 1;

    printf("processor %d begins\n", MYPROC);
    splitc_barrier(SPLITC_HERE);
    if (!strcmp(what, "null")) {
        splitc_global nothing = 0;
        return splitc_read_int(nothing); /* line 21 */
    }
    if (!strcmp(what, "wild"))
        splitc_write_long(splitc_to_global(last, (void *)0x7777000), 1); /* line 24 */
    if (!strcmp(what, "processor"))
        splitc_store_int(splitc_to_global(PROCS, &word), 1); /* line 26 */
    if (!strcmp(what, "end")) {
        /* The last bytes of the segment are no word. */
        splitc_global array = splitc_all_spread_malloc(PROCS, 8, SPLITC_HERE);
        int value;
        splitc_get_int(&value, splitc_global_add(array, 1L << 40, 1)); /* line 31 */
    }
    if (!strcmp(what, "library")) {
        char *of_libc = malloc(1 << 20);
        splitc_bulk_write(splitc_to_global(last, of_libc), of_libc, 4); /* line 35 */
    }
    if (!strcmp(what, "kill") && MYPROC == last)
        kill(getpid(), SIGKILL);
    if (!strcmp(what, "segv") && MYPROC == last)
        raise(SIGSEGV);
    if (!strcmp(what, "exit") && MYPROC == last)
        exit(0);
    if (!strcmp(what, "status") && MYPROC == last)
        exit(7);
    if (!strcmp(what, "return") && MYPROC == last)
        return 0;
    if (!strcmp(what, "never") && MYPROC == last)
        for (;;)
            pause();
    if (!strcmp(what, "fail") && MYPROC == last)
        splitc_fail(SPLITC_HERE, "the answer is %d", 42); /* line 51 */
    if (!strcmp(what, "memory"))
        splitc_all_spread_malloc(1L << 50, 8, SPLITC_HERE); /* line 53 */
    if (!strcmp(what, "all exit")) {
        printf("processor %d exits\n", MYPROC);
        exit(0);
    }
    splitc_barrier(SPLITC_HERE);
    return 0;
}

SPLITC_MAIN(program)
