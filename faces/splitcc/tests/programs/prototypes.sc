/* Prototypes with spread arrays and sizes before the definition.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

void set(int v, int w, int q, int X[v][w]::[q]);
int A[2][PROCS]::[3];
void set(int v, int w, int q, int X[v][w]::[q]) { X[1][LAST][q - 1] = 5; }

int splitc_main(int argc, char **argv)
{
    set(2, PROCS, 3, A);
    barrier();
    CHECK(A[1][LAST][2] == 5);
    DONE();
}
