/* Split-C: what compiled programs call beside the runtime's interface. splitcc includes this file before every source; no
 * program includes it itself. All names begin with `splitc_`. */
#ifndef SPLIT_C_COMPILER_H
#define SPLIT_C_COMPILER_H

#include <splitc_abi.h>

/* The global address of something of this processor. Null stays null. */
SPLITC_INLINE splitc_global splitc_mine(const volatile void *address)
{
    return splitc_to_global(splitc_state.proc, address);
}

/* Arithmetic of global pointers stays on the processor. */
SPLITC_INLINE splitc_global splitc_step(splitc_global pointer, long elements, size_t element_bytes)
{
    return pointer + (splitc_global)elements * element_bytes;
}

SPLITC_INLINE long splitc_distance(splitc_global to, splitc_global from, size_t element_bytes)
{
    return (long)(to - from) / (long)element_bytes;
}

/* A read in a function that asks for atomic procedures without waiting for each: it waits for them first. */
SPLITC_INLINE void splitc_read_after_atomic(void *to, splitc_global from, size_t bytes, const splitc_place *place)
{
    splitc_sync(place);
    splitc_read(to, from, bytes, place);
}

/* The index of an element of a spread array that is read or written. */
SPLITC_INLINE long splitc_index(long index, long count, const splitc_place *place)
{
    if (SPLITC_UNLIKELY((unsigned long)index >= (unsigned long)count))
        splitc_fail(place, "the index %ld is outside of the spread array, which has %ld elements, counted from 0", index, count);
    return index;
}

/* Begins a read or a write. The result: whether it is still under way, until the next sync. */
SPLITC_INLINE int splitc_begin_read(void *to, splitc_global from, size_t bytes, const splitc_place *place)
{
    if (SPLITC_IS_WORD(bytes)) {
        const char *at = splitc_find(from);
        if (__builtin_expect(at != (const char *)0, 1)) {
            splitc_attend();
            splitc_load(to, at, bytes);
            return 0;
        }
    }
    splitc_slow_get(to, from, bytes, place);
    return 1;
}

SPLITC_INLINE int splitc_begin_write(splitc_global to, const void *from, size_t bytes, const splitc_place *place)
{
    if (SPLITC_IS_WORD(bytes)) {
        char *at = splitc_find(to);
        if (__builtin_expect(at != (char *)0, 1)) {
            splitc_attend();
            splitc_save(at, from, bytes);
            return 0;
        }
    }
    splitc_slow_put(to, from, bytes, place);
    return 1;
}

/* A barrier, after which all that this processor has asked for is done, too. */
SPLITC_INLINE void splitc_complete_barrier(const splitc_place *place)
{
    splitc_sync(place);
    splitc_barrier(place);
}

SPLITC_INLINE void splitc_complete_all_store_sync(const splitc_place *place)
{
    splitc_sync(place);
    splitc_all_store_sync(place);
}

SPLITC_INLINE int splitc_test_and_set(splitc_global where, const splitc_place *place)
{
    return splitc_fetch_and_or_i(where, 1, place);
}

/* The end of the scope of a spread array. */
static __inline__ __attribute__((unused)) void splitc_leave_spread_array(splitc_global *array)
{
    static const splitc_place place = {"end of the scope of a spread array", 0};
    if (*array)
        splitc_all_spread_free(*array, &place);
}

/* In place of the first parameter of a function all of whose arguments are variable (<varargs.h>): it takes no room. */
struct splitc_no_parameter {};

/* Which bytes of a structure a bit-field lies in: those that are not 0 when all its bits are set and no others. */
SPLITC_INLINE void splitc_bytes_of_field(const void *mask, size_t bytes, unsigned long *first, unsigned long *count)
{
    const unsigned char *byte = (const unsigned char *)mask;
    unsigned long low = 0, high = bytes;
    while (low < bytes && byte[low] == 0)
        low++;
    while (high > low && byte[high - 1] == 0)
        high--;
    *first = low;
    *count = high - low;
}

#endif
