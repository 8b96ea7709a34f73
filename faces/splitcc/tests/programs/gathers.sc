/* The first number of each processor's array is gathered on processor 0, as programs of the T3D do.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    int numbers[16], p, round;
    double fractions[16];
    for (round = 0; round < 3; round++) {
        for (p = 0; p < PROCS; p++) {
            numbers[p] = -1;
            fractions[p] = -1;
        }
        numbers[0] = MYPROC * 10 + round;
        fractions[0] = MYPROC + 0.5;
        all_gather(numbers);
        all_gather_d(fractions);
        for (p = 0; p < PROCS; p++) {
            CHECK(numbers[p] == (MYPROC == 0 ? p * 10 + round : p == 0 ? MYPROC * 10 + round : -1));
            CHECK(fractions[p] == (MYPROC == 0 ? p + 0.5 : p == 0 ? MYPROC + 0.5 : -1));
        }
    }
    DONE();
}
