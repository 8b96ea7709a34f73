/* Radix sort with bulk transfers (Split-C, Table 2: radixb). Each pass collects the keys for each processor, with their places,
 * and stores them there together; the receiver puts them in their places. Usage: radixb [-n keys] */
#include "sorting.h"

#define BITS 8
#define RADIX (1 << BITS)

typedef struct { key_type key; unsigned place; } item;

int splitc_main(int argc, char **argv)
{
    long total = argument(argc, argv, "-n", 1L << 16), n = total / PROCS, i, place;
    key_type *spread from, *spread to, *spread t, *mine, *out;
    item *spread inbox, *in, *outbox;
    int *spread counts, *spread sizes, *spread coming, *spread where;
    int *all, offset[RADIX], go[PROCS], start[PROCS + 1], *here;
    int digit, p, shift, sum;
    double seconds;
    char what[80];

    if (total % PROCS != 0 || n == 0)
        refuse("the number of keys must be a multiple of the number of processors");
    from = all_spread_malloc(PROCS, n * sizeof(key_type));
    to = all_spread_malloc(PROCS, n * sizeof(key_type));
    inbox = all_spread_malloc(PROCS, n * sizeof(item));
    counts = all_spread_malloc(PROCS, RADIX * sizeof(int));
    coming = all_spread_malloc(PROCS, PROCS * sizeof(int));
    where = all_spread_malloc(PROCS, PROCS * sizeof(int));
    sizes = all_spread_malloc(PROCS, sizeof(int));
    all = (int *)malloc(PROCS * RADIX * sizeof(int));
    outbox = (item *)malloc(n * sizeof(item));
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
        /* How many go where: the places of a digit are consecutive. */
        for (p = 0; p < PROCS; p++)
            go[p] = 0;
        for (digit = 0; digit < RADIX; digit++)
            for (place = offset[digit], i = count[digit]; i > 0;) {
                long here = min(i, n - place % n);
                go[place / n] += here;
                place += here;
                i -= here;
            }
        for (p = 0; p < PROCS; p++)
            *((int *global)(coming + p) + MYPROC) :- go[p];
        all_store_sync();
        /* Tell each sender where its part begins. */
        here = (int *)(coming + MYPROC);
        for (p = 0, sum = 0; p < PROCS; p++) {
            *((int *global)(where + p) + MYPROC) :- sum;
            sum += here[p];
        }
        for (p = 0, start[0] = 0; p < PROCS; p++)
            start[p + 1] = start[p] + go[p];
        for (p = 0; p < PROCS; p++)
            go[p] = start[p];
        for (i = 0; i < n; i++) {
            item *o;
            place = offset[(mine[i] >> shift) & (RADIX - 1)]++;
            o = &outbox[go[place / n]++];
            o->key = mine[i];
            o->place = place % n;
        }
        all_store_sync();
        here = (int *)(where + MYPROC);
        for (i = 0; i < PROCS; i++) {
            p = (MYPROC + i) % PROCS;
            if (start[p + 1] > start[p])
                bulk_store((item *global)(inbox + p) + here[p], outbox + start[p], (start[p + 1] - start[p]) * sizeof(item));
        }
        all_store_sync();
        in = (item *)(inbox + MYPROC);
        out = (key_type *)(to + MYPROC);
        for (i = 0; i < n; i++)
            out[in[i].place] = in[i].key;
        barrier();
        t = from, from = to, to = t;
    }

    seconds = get_seconds() - seconds;
    sprintf(what, "radixb: %ld keys", total);
    return report(what, seconds, differences(from, sizes, total));
}
