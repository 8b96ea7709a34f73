/* The first half of a sample sort: splitters from a sample of all keys. */
#include "sorting.h"

#define OVERSAMPLE 64

/* Every processor gives OVERSAMPLE of its keys to processor 0, which sorts them and tells all PROCS - 1 of them. */
static void choose_splitters(key_type *mine, long n, key_type splitter[])
{
    key_type S[1]::[PROCS * OVERSAMPLE];
    key_type *sample = NULL, *other;
    int i;

    for (i = 0; i < OVERSAMPLE; i++)
        S[0][MYPROC * OVERSAMPLE + i] :- mine[i * n / OVERSAMPLE];
    all_store_sync();
    on_one {
        sample = tolocal(S[0]);
        other = (key_type *)malloc(PROCS * OVERSAMPLE * sizeof(key_type));
        sort_here(sample, other, PROCS * OVERSAMPLE);
        free(other);
    }
    for (i = 1; i < PROCS; i++)
        splitter[i - 1] = all_bcast_ui(MYPROC == 0 ? sample[i * OVERSAMPLE] : 0);
    barrier();
}

/* The processor that a key belongs to: the number of splitters that are not above it. */
static int owner(key_type key, key_type splitter[])
{
    int low = 0, high = PROCS - 1;

    while (low < high) {
        int middle = (low + high) / 2;
        if (splitter[middle] <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
