/* Radix sort (Split-C, Table 2: radix). Each pass counts digits, finds where each key goes by a scan over all processors, and
 * stores it there: one signaling store for each key. Usage: radix [-n keys] */
#include "sorting.h"

#define BITS 8
#define RADIX (1 << BITS)

int splitc_main(int argc, char **argv)
{
    long total = argument(argc, argv, "-n", 1L << 16), n = total / PROCS, i, place;
    key_type *spread from, *spread to, *spread t, *mine;
    key_type *global dest[PROCS];
    int *spread counts, *spread sizes;
    int *all, offset[RADIX];
    int digit, p, shift, sum;
    double seconds;
    char what[80];

    if (total % PROCS != 0 || n == 0)
        refuse("the number of keys must be a multiple of the number of processors");
    from = all_spread_malloc(PROCS, n * sizeof(key_type));
    to = all_spread_malloc(PROCS, n * sizeof(key_type));
    counts = all_spread_malloc(PROCS, RADIX * sizeof(int));
    sizes = all_spread_malloc(PROCS, sizeof(int));
    all = (int *)malloc(PROCS * RADIX * sizeof(int));
    mine = (key_type *)(from + MYPROC);
    for (i = 0; i < n; i++)
        mine[i] = key_at(MYPROC * n + i);
    *(sizes + MYPROC) = n;
    barrier();
    seconds = get_seconds();

    for (shift = 0; shift < 32; shift += BITS) {
        int *count = (int *)(counts + MYPROC);

        mine = (key_type *)(from + MYPROC);
        for (digit = 0; digit < RADIX; digit++)
            count[digit] = 0;
        for (i = 0; i < n; i++)
            count[(mine[i] >> shift) & (RADIX - 1)]++;
        barrier();
        for (p = 0; p < PROCS; p++)
            bulk_get(all + p * RADIX, (int *global)(counts + p), RADIX * sizeof(int));
        sync();
        for (digit = 0, sum = 0; digit < RADIX; digit++)
            for (p = 0; p < PROCS; p++) {
                if (p == MYPROC)
                    offset[digit] = sum;
                sum += all[p * RADIX + digit];
            }
        for (p = 0; p < PROCS; p++)
            dest[p] = (key_type *global)(to + p);
        for (i = 0; i < n; i++) {
            place = offset[(mine[i] >> shift) & (RADIX - 1)]++;
            *(dest[place / n] + place % n) :- mine[i];
        }
        all_store_sync();
        t = from, from = to, to = t;
    }

    seconds = get_seconds() - seconds;
    sprintf(what, "radix: %ld keys", total);
    return report(what, seconds, differences(from, sizes, total));
}
