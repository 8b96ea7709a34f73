/* Polling granularity (Split-C 5.3). In turn each processor is the busy one: it computes in pieces of a given length, and may
 * poll after each. The others ask it for one item, and cannot go on with their own piece of work without it.
 * Usage: granularity [-g microseconds of a piece] [-p 1 to poll after each] [-k pieces] [-r rounds] */
#include "report.h"

int item;
int got;

/* So many rounds of computation, each of which needs the one before. */
static double spin(double x, long rounds)
{
    long i;

    for (i = 0; i < rounds; i++)
        x = x * 0.999999 + 1e-6;
    return x;
}

int splitc_main(int argc, char **argv)
{
    double grain = argument(argc, argv, "-g", 100L) * 1e-6, seconds, start, sink = 0;
    int polls = argument(argc, argv, "-p", 1L), pieces = argument(argc, argv, "-k", 10L), rounds = argument(argc, argv, "-r", 2L);
    int round, busy, k;
    long wrong = 0, length, asked = 0;
    char what[120];

    /* How fast it computes: the best of several times, as something else may run here, too. */
    length = 100000;
    seconds = 1;
    for (k = 0; k < 20; k++) {
        start = get_seconds();
        sink = spin(sink, length);
        seconds = min(seconds, get_seconds() - start);
    }
    length = length * grain / seconds + 1;
    length = all_bcast_l(length);
    item = 1000 + MYPROC;
    barrier();
    seconds = get_seconds();

    for (round = 0; round < rounds; round++)
        for (busy = 0; busy < PROCS; busy++) {
            if (MYPROC == busy)
                for (k = 0; k < pieces; k++) {
                    sink = spin(sink, length);
                    if (polls)
                        splitc_poll();
                }
            else {
                got = *toglobal(busy, &item);
                asked++;
                wrong += got != 1000 + busy;
                for (k = 0; k < pieces; k++)
                    sink = spin(sink, length);
            }
            barrier();
        }
    seconds = get_seconds() - seconds;
    asked = all_reduce_to_all_add_l(asked);
    wrong += asked != (long)rounds * PROCS * (PROCS - 1);
    sprintf(what, "granularity: %.0f us, %s, %.2f us an iteration%s", grain * 1e6, polls ? "polling" : "no polling",
            seconds * 1e6 / (rounds * PROCS), sink == 0 ? " " : "");
    return report(what, seconds, wrong);
}
