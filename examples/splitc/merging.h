/* Sorts whose processors compare their blocks with those of a partner. */
#include "sorting.h"

key_type *spread block, *spread partner_block, *spread merged_block;
int *spread sizes;
long n;

static void start_blocks(long total)
{
    key_type *mine;
    long i;

    n = total / PROCS;
    if (total % PROCS != 0 || n == 0)
        refuse("the number of keys must be a multiple of the number of processors");
    block = all_spread_malloc(PROCS, n * sizeof(key_type));
    partner_block = all_spread_malloc(PROCS, n * sizeof(key_type));
    merged_block = all_spread_malloc(PROCS, n * sizeof(key_type));
    sizes = all_spread_malloc(PROCS, sizeof(int));
    *(sizes + MYPROC) = n;
    mine = (key_type *)(block + MYPROC);
    for (i = 0; i < n; i++)
        mine[i] = key_at(MYPROC * n + i);
    barrier();
}

static void sort_block()
{
    sort_here((key_type *)(block + MYPROC), (key_type *)(merged_block + MYPROC), n);
}

/* Exchanges blocks with a partner (itself: with nobody), and keeps the lower or the upper half of both. Every processor calls
 * it. Says whether anything moved. */
static int compare_split(int partner, int lower)
{
    key_type *mine = (key_type *)(block + MYPROC), *theirs = (key_type *)(partner_block + MYPROC);
    key_type *out = (key_type *)(merged_block + MYPROC);
    key_type *spread t;
    long i, j, k;
    int moved = 0;

    if (partner != MYPROC)
        bulk_store((key_type *global)(partner_block + partner), mine, n * sizeof(key_type));
    all_store_sync();
    if (partner != MYPROC) {
        if (lower) {
            for (i = j = k = 0; k < n; k++)
                out[k] = mine[i] <= theirs[j] ? mine[i++] : theirs[j++];
            moved = j > 0;
        } else {
            for (i = j = k = n - 1; k >= 0; k--)
                out[k] = mine[i] >= theirs[j] ? mine[i--] : theirs[j--];
            moved = j < n - 1;
        }
    } else
        memcpy(out, mine, n * sizeof(key_type));
    t = block, block = merged_block, merged_block = t;
    barrier();
    return moved;
}
