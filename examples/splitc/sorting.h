/* Keys: where they come from, how one processor sorts them, and how a distributed result is checked. */
#include "report.h"

typedef unsigned int key_type;

/* The key at a place of the whole input: every processor can make it. */
static key_type key_at(long place)
{
    unsigned long x = (unsigned long)place * 0x9e3779b97f4a7c15ul + 0x1234567ul;

    x ^= x >> 31;
    x *= 0xbf58476d1ce4e5b9ul;
    x ^= x >> 27;
    return (key_type)(x ^ (x >> 32));
}

/* Sorts by digits of 8 bits; `other` has room for as many keys. The result is in `keys`. */
static void sort_here(key_type *keys, key_type *other, long n)
{
    long count[257], i;
    int shift;
    key_type *t;

    for (shift = 0; shift < 32; shift += 8) {
        memset(count, 0, sizeof count);
        for (i = 0; i < n; i++)
            count[((keys[i] >> shift) & 255) + 1]++;
        for (i = 0; i < 256; i++)
            count[i + 1] += count[i];
        for (i = 0; i < n; i++)
            other[count[(keys[i] >> shift) & 255]++] = keys[i];
        t = keys, keys = other, other = t;
    }
}

/* Processor 0 sorts the whole input by itself, and compares. Block p has count[p] keys at `result + p`. */
static long differences(key_type *spread result, int *spread count, long total)
{
    key_type *all, *other, *block;
    long i, place = 0, wrong = 0;
    int p, n;

    barrier();
    on_one {
        all = (key_type *)malloc(total * sizeof(key_type));
        other = (key_type *)malloc(total * sizeof(key_type));
        if (all == NULL || other == NULL) {
            fprintf(stderr, "no memory for %ld keys on processor 0\n", total);
            exit(1);
        }
        for (i = 0; i < total; i++)
            all[i] = key_at(i);
        sort_here(all, other, total);
        block = other;
        for (p = 0; p < PROCS; p++) {
            n = *(count + p);
            if (n < 0 || place + n > total) {
                wrong += total;
                break;
            }
            bulk_read(block, (key_type *global)(result + p), n * sizeof(key_type));
            for (i = 0; i < n; i++)
                wrong += block[i] != all[place + i];
            place += n;
        }
        wrong += total - place;
        free(all);
        free(other);
    }
    barrier();
    return wrong;
}
