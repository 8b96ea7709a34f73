/* Sample sort with bulk transfers (Split-C, Table 2: sampleb). Keys are put into a bucket for each processor, counts are
 * exchanged, and each bucket is stored at once. Usage: sampleb [-n keys] */
#include "splitters.h"

int splitc_main(int argc, char **argv)
{
    long total = argument(argc, argv, "-n", 1L << 16), n = total / PROCS, i;
    long room = 2 * n + 1024;
    key_type *mine, *grouped, *other, splitter[PROCS];
    key_type *spread result;
    int *spread sizes, *spread coming, *spread where;
    int *here, go[PROCS], start[PROCS + 1], p, sum;
    double seconds;
    char what[80];

    if (total % PROCS != 0 || n < OVERSAMPLE)
        refuse("the number of keys must be a multiple of the number of processors, at least 64 for each");
    result = all_spread_malloc(PROCS, room * sizeof(key_type));
    sizes = all_spread_malloc(PROCS, sizeof(int));
    coming = all_spread_malloc(PROCS, PROCS * sizeof(int));
    where = all_spread_malloc(PROCS, PROCS * sizeof(int));
    mine = (key_type *)malloc(n * sizeof(key_type));
    grouped = (key_type *)malloc(n * sizeof(key_type));
    other = (key_type *)malloc(room * sizeof(key_type));
    for (i = 0; i < n; i++)
        mine[i] = key_at(MYPROC * n + i);
    barrier();
    seconds = get_seconds();

    choose_splitters(mine, n, splitter);
    for (p = 0; p < PROCS; p++)
        go[p] = 0;
    for (i = 0; i < n; i++)
        go[owner(mine[i], splitter)]++;
    for (p = 0; p < PROCS; p++)
        *((int *global)(coming + p) + MYPROC) :- go[p];
    for (p = 0, start[0] = 0; p < PROCS; p++)
        start[p + 1] = start[p] + go[p];
    for (p = 0; p < PROCS; p++)
        go[p] = start[p];
    for (i = 0; i < n; i++)
        grouped[go[owner(mine[i], splitter)]++] = mine[i];
    all_store_sync();
    here = (int *)(coming + MYPROC);
    for (p = 0, sum = 0; p < PROCS; p++) {
        *((int *global)(where + p) + MYPROC) :- sum;
        sum += here[p];
    }
    if (sum > room) {
        fprintf(stderr, "processor %d gets %d keys, and has room for %ld\n", MYPROC, sum, room);
        exit(1);
    }
    all_store_sync();
    here = (int *)(where + MYPROC);
    for (i = 0; i < PROCS; i++) {
        p = (MYPROC + i) % PROCS;
        if (start[p + 1] > start[p])
            bulk_store((key_type *global)(result + p) + here[p], grouped + start[p], (start[p + 1] - start[p]) * sizeof(key_type));
    }
    all_store_sync();
    sort_here((key_type *)(result + MYPROC), other, sum);
    barrier();

    seconds = get_seconds() - seconds;
    *(sizes + MYPROC) = sum;
    sprintf(what, "sampleb: %ld keys", total);
    return report(what, seconds, differences(result, sizes, total));
}
