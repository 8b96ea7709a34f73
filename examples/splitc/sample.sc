/* Sample sort (Split-C, Table 2: sample; 5.4). Each key is pushed to its processor by an atomic procedure.
 * Usage: sample [-n keys] */
#include "splitters.h"

typedef struct {
    int n, room;
    key_type key[1];
} bucket;

/* Runs on the processor that the key belongs to, one at a time. */
void push(bucket *b, key_type key)
{
    if (b->n < b->room)
        b->key[b->n] = key;
    b->n++;
}

int splitc_main(int argc, char **argv)
{
    long total = argument(argc, argv, "-n", 1L << 14), n = total / PROCS, i;
    long room = 2 * n + 1024;
    key_type *mine, *other, splitter[PROCS];
    bucket *spread buckets, *b;
    bucket *global to[PROCS];
    key_type *spread result;
    int *spread sizes;
    int p;
    double seconds;
    char what[80];

    if (total % PROCS != 0 || n < OVERSAMPLE)
        refuse("the number of keys must be a multiple of the number of processors, at least 64 for each");
    buckets = all_spread_malloc(PROCS, sizeof(bucket) + room * sizeof(key_type));
    result = all_spread_malloc(PROCS, room * sizeof(key_type));
    sizes = all_spread_malloc(PROCS, sizeof(int));
    mine = (key_type *)malloc(n * sizeof(key_type));
    b = (bucket *)(buckets + MYPROC);
    b->n = 0;
    b->room = room;
    for (p = 0; p < PROCS; p++)
        to[p] = (bucket *global)(buckets + p);
    for (i = 0; i < n; i++)
        mine[i] = key_at(MYPROC * n + i);
    barrier();
    seconds = get_seconds();

    choose_splitters(mine, n, splitter);
    for (i = 0; i < n; i++)
        atomic(push, to[owner(mine[i], splitter)], mine[i]);
    barrier();
    if (b->n > room) {
        fprintf(stderr, "processor %d got %d keys, and has room for %ld\n", MYPROC, b->n, room);
        exit(1);
    }
    other = (key_type *)(result + MYPROC);
    sort_here(b->key, other, b->n);
    barrier();

    seconds = get_seconds() - seconds;
    memcpy(other, b->key, b->n * sizeof(key_type));
    *(sizes + MYPROC) = b->n;
    sprintf(what, "sample: %ld keys", total);
    return report(what, seconds, differences(result, sizes, total));
}
