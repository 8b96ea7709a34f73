/* Shell sort (Split-C, Table 2: shell). Blocks are compared with partners across the dimensions of a hypercube, which brings
 * keys near their places; then odd-even rounds follow until nothing moves. Usage: shell [-n keys] */
#include "merging.h"

int splitc_main(int argc, char **argv)
{
    long total = argument(argc, argv, "-n", 1L << 16);
    int dimension, round, moved;
    double seconds;
    char what[80];

    start_blocks(total);
    seconds = get_seconds();

    sort_block();
    for (dimension = PROCSLOG; dimension >= 0; dimension--) {
        int partner = MYPROC ^ (1 << dimension);
        if (partner >= PROCS)
            partner = MYPROC;
        compare_split(partner, MYPROC < partner);
    }
    do {
        moved = 0;
        for (round = 0; round < 2; round++) {
            int partner = (MYPROC + round) % 2 == 0 ? MYPROC + 1 : MYPROC - 1;
            if (partner < 0 || partner >= PROCS)
                partner = MYPROC;
            moved |= compare_split(partner, MYPROC < partner);
        }
        moved = all_reduce_to_all_or(moved);
    } while (moved);

    seconds = get_seconds() - seconds;
    sprintf(what, "shell: %ld keys", total);
    return report(what, seconds, differences(block, sizes, total));
}
