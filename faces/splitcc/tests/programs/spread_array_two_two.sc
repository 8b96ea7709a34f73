/* Two dimensions spread, two in the block.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int X[3][4]::[2][5];

int splitc_main(int argc, char **argv)
{
    int i, j, k, l;
    for (i = 0; i < 3; i++) for (j = 0; j < 4; j++) if ((i * 4 + j) % PROCS == MYPROC)
        for (k = 0; k < 2; k++) for (l = 0; l < 5; l++) X[i][j][k][l] = i * 1000 + j * 100 + k * 10 + l;
    barrier();
    for (i = 0; i < 3; i++) for (j = 0; j < 4; j++) {
        CHECK(X[i][j][1][4] == i * 1000 + j * 100 + 14);
        CHECK(toproc(&X[i][j][0][0]) == (i * 4 + j) % PROCS);
    }
    DONE();
}
