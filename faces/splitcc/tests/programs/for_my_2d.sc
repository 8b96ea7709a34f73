/* The loop over one's own elements of two dimensions.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int M[5][7]::;

int splitc_main(int argc, char **argv)
{
    int i, j, n = 0, all;
    for_my_2d(i, j, 5, 7) { M[i][j] = MYPROC; n++; }
    barrier();
    all = all_reduce_to_all_add(n);
    CHECK(all == 35);
    for (i = 0; i < 5; i++) for (j = 0; j < 7; j++) CHECK(M[i][j] == (i * 7 + j) % PROCS);
    DONE();
}
