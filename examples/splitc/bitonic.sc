/* Bitonic sort (Split-C, Table 2: bitonic). Blocks are sorted by themselves, then merged in lg P stages with partners at the
 * distances of a hypercube. Usage: bitonic [-n keys]; the number of processors is a power of two. */
#include "merging.h"

int splitc_main(int argc, char **argv)
{
    long total = argument(argc, argv, "-n", 1L << 16);
    int stage, step;
    double seconds;
    char what[80];

    if ((PROCS & (PROCS - 1)) != 0)
        refuse("bitonic needs a power of two of processors");
    start_blocks(total);
    seconds = get_seconds();

    sort_block();
    for (stage = 1; stage <= PROCSLOG; stage++)
        for (step = stage - 1; step >= 0; step--) {
            int partner = MYPROC ^ (1 << step);
            int ascending = ((MYPROC >> stage) & 1) == 0;
            compare_split(partner, (MYPROC < partner) == ascending);
        }

    seconds = get_seconds() - seconds;
    sprintf(what, "bitonic: %ld keys", total);
    return report(what, seconds, differences(block, sizes, total));
}
