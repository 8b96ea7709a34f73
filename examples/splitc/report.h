/* What the example programs share: arguments, and the result that each prints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <split-c/split-c.h>
#include <split-c/control.h>

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))

/* The number behind `name` on the command line, or another. */
static long argument(argc, argv, name, otherwise)
    int argc;
    char **argv, *name;
    long otherwise;
{
    int i;

    for (i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return atol(argv[i + 1]);
    return otherwise;
}

/* Ends a program that cannot run with these arguments. Every processor calls it. */
static void refuse(char *message)
{
    on_one fprintf(stderr, "%s\n", message);
    exit(2);
}

/* The end of every program: the time, and whether the result is that of a serial run. */
static int report(char *what, double seconds, long wrong)
{
    wrong = all_reduce_to_all_add_l(wrong);
    seconds = all_reduce_to_all_max_d(seconds);
    on_one {
        printf("%s, %d processors: %.6f s\n", what, PROCS, seconds);
        if (wrong)
            printf("FAILED: %ld values differ from the serial run\n", wrong);
        else
            printf("PASSED\n");
        fflush(stdout);
    }
    return wrong != 0;
}
