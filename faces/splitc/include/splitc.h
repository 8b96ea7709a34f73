/* Split-C for plain C: global addresses, split-phase access, stores and collective operations as functions (decision 0038).
 *
 *     #include "splitc.h"
 *
 *     static int program(int argc, char **argv)
 *     {
 *         splitc_global counters = splitc_all_spread_malloc(PROCS, sizeof(long), SPLITC_HERE);
 *         splitc_write_long(splitc_spread_add(counters, MYPROC, sizeof(long)), MYPROC);
 *         splitc_barrier(SPLITC_HERE);
 *         return splitc_read_long(counters) != 0;
 *     }
 *
 *     SPLITC_MAIN(program)
 *
 * Compile with `-no-pie`, link with `-lsplitc`, and run with `hamlyn run -n 4 ./a.out`. Memory of splitc_malloc, static variables
 * and variables of functions can be reached by all processors.
 */
#ifndef SPLITC_H
#define SPLITC_H

#include "splitc_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef MYPROC
#define MYPROC (splitc_state.proc)
#define PROCS (splitc_state.procs)
#define PROCSLOG (splitc_state.procs_log)
#endif

/* The place of the call, for messages. */
#ifdef __cplusplus
#define SPLITC_HERE                                                                                                               \
    ([]() -> const splitc_place * {                                                                                               \
        static const splitc_place splitc_here = {__FILE__, __LINE__};                                                             \
        return &splitc_here;                                                                                                      \
    }())
#else
#define SPLITC_HERE (__extension__({ static const splitc_place splitc_here = {__FILE__, __LINE__}; &splitc_here; }))
#endif

/* Of the linker: where the static data of the program lie. */
extern char __data_start[];
extern char _end[];

/* Defines the main function of the C program: it starts the runtime and runs `program`, an int (int, char **). */
#define SPLITC_MAIN(program)                                                                                                      \
    int main(int argc, char **argv) { return splitc_start(argc, argv, program, __data_start, _end); }

/* Typed forms: splitc_read_int, splitc_write_int, splitc_get_int, splitc_put_int, splitc_store_int; the same for the other types.
 * They name the place of the call themselves. */
#define SPLITC_ACCESSES(name, type)                                                                                               \
    SPLITC_INLINE type splitc_read_##name##_at(splitc_global from, const splitc_place *place)                                     \
    {                                                                                                                             \
        type value;                                                                                                               \
        splitc_read(&value, from, sizeof value, place);                                                                           \
        return value;                                                                                                             \
    }                                                                                                                             \
    SPLITC_INLINE void splitc_write_##name##_at(splitc_global to, type value, const splitc_place *place)                          \
    {                                                                                                                             \
        splitc_write(to, &value, sizeof value, place);                                                                            \
    }                                                                                                                             \
    SPLITC_INLINE void splitc_get_##name##_at(type *to, splitc_global from, const splitc_place *place)                            \
    {                                                                                                                             \
        splitc_get(to, from, sizeof *to, place);                                                                                  \
    }                                                                                                                             \
    SPLITC_INLINE void splitc_put_##name##_at(splitc_global to, type value, const splitc_place *place)                            \
    {                                                                                                                             \
        splitc_put(to, &value, sizeof value, place);                                                                              \
    }                                                                                                                             \
    SPLITC_INLINE void splitc_store_##name##_at(splitc_global to, type value, const splitc_place *place)                          \
    {                                                                                                                             \
        splitc_store(to, &value, sizeof value, place);                                                                            \
    }

SPLITC_ACCESSES(char, char)
SPLITC_ACCESSES(short, short)
SPLITC_ACCESSES(int, int)
SPLITC_ACCESSES(unsigned, unsigned)
SPLITC_ACCESSES(long, long)
SPLITC_ACCESSES(ulong, unsigned long)
SPLITC_ACCESSES(float, float)
SPLITC_ACCESSES(double, double)
SPLITC_ACCESSES(global, splitc_global)
#undef SPLITC_ACCESSES

#define splitc_read_char(from) splitc_read_char_at(from, SPLITC_HERE)
#define splitc_read_short(from) splitc_read_short_at(from, SPLITC_HERE)
#define splitc_read_int(from) splitc_read_int_at(from, SPLITC_HERE)
#define splitc_read_unsigned(from) splitc_read_unsigned_at(from, SPLITC_HERE)
#define splitc_read_long(from) splitc_read_long_at(from, SPLITC_HERE)
#define splitc_read_ulong(from) splitc_read_ulong_at(from, SPLITC_HERE)
#define splitc_read_float(from) splitc_read_float_at(from, SPLITC_HERE)
#define splitc_read_double(from) splitc_read_double_at(from, SPLITC_HERE)
#define splitc_read_global(from) splitc_read_global_at(from, SPLITC_HERE)
#define splitc_write_char(to, value) splitc_write_char_at(to, value, SPLITC_HERE)
#define splitc_write_short(to, value) splitc_write_short_at(to, value, SPLITC_HERE)
#define splitc_write_int(to, value) splitc_write_int_at(to, value, SPLITC_HERE)
#define splitc_write_unsigned(to, value) splitc_write_unsigned_at(to, value, SPLITC_HERE)
#define splitc_write_long(to, value) splitc_write_long_at(to, value, SPLITC_HERE)
#define splitc_write_ulong(to, value) splitc_write_ulong_at(to, value, SPLITC_HERE)
#define splitc_write_float(to, value) splitc_write_float_at(to, value, SPLITC_HERE)
#define splitc_write_double(to, value) splitc_write_double_at(to, value, SPLITC_HERE)
#define splitc_write_global(to, value) splitc_write_global_at(to, value, SPLITC_HERE)
#define splitc_get_char(to, from) splitc_get_char_at(to, from, SPLITC_HERE)
#define splitc_get_short(to, from) splitc_get_short_at(to, from, SPLITC_HERE)
#define splitc_get_int(to, from) splitc_get_int_at(to, from, SPLITC_HERE)
#define splitc_get_unsigned(to, from) splitc_get_unsigned_at(to, from, SPLITC_HERE)
#define splitc_get_long(to, from) splitc_get_long_at(to, from, SPLITC_HERE)
#define splitc_get_ulong(to, from) splitc_get_ulong_at(to, from, SPLITC_HERE)
#define splitc_get_float(to, from) splitc_get_float_at(to, from, SPLITC_HERE)
#define splitc_get_double(to, from) splitc_get_double_at(to, from, SPLITC_HERE)
#define splitc_put_char(to, value) splitc_put_char_at(to, value, SPLITC_HERE)
#define splitc_put_short(to, value) splitc_put_short_at(to, value, SPLITC_HERE)
#define splitc_put_int(to, value) splitc_put_int_at(to, value, SPLITC_HERE)
#define splitc_put_unsigned(to, value) splitc_put_unsigned_at(to, value, SPLITC_HERE)
#define splitc_put_long(to, value) splitc_put_long_at(to, value, SPLITC_HERE)
#define splitc_put_ulong(to, value) splitc_put_ulong_at(to, value, SPLITC_HERE)
#define splitc_put_float(to, value) splitc_put_float_at(to, value, SPLITC_HERE)
#define splitc_put_double(to, value) splitc_put_double_at(to, value, SPLITC_HERE)
#define splitc_store_char(to, value) splitc_store_char_at(to, value, SPLITC_HERE)
#define splitc_store_short(to, value) splitc_store_short_at(to, value, SPLITC_HERE)
#define splitc_store_int(to, value) splitc_store_int_at(to, value, SPLITC_HERE)
#define splitc_store_unsigned(to, value) splitc_store_unsigned_at(to, value, SPLITC_HERE)
#define splitc_store_long(to, value) splitc_store_long_at(to, value, SPLITC_HERE)
#define splitc_store_ulong(to, value) splitc_store_ulong_at(to, value, SPLITC_HERE)
#define splitc_store_float(to, value) splitc_store_float_at(to, value, SPLITC_HERE)
#define splitc_store_double(to, value) splitc_store_double_at(to, value, SPLITC_HERE)

/* Any number of bytes; the destination comes first. Gets and puts are complete after sync, stores are counted at the target. */
#define splitc_bulk_read(to, from, bytes) splitc_read(to, from, bytes, SPLITC_HERE)
#define splitc_bulk_write(to, from, bytes) splitc_write(to, from, bytes, SPLITC_HERE)
#define splitc_bulk_get(to, from, bytes) splitc_get(to, from, bytes, SPLITC_HERE)
#define splitc_bulk_put(to, from, bytes) splitc_put(to, from, bytes, SPLITC_HERE)
#define splitc_bulk_store(to, from, bytes) splitc_store(to, from, bytes, SPLITC_HERE)

/* Global pointers step on their processor. */
SPLITC_INLINE splitc_global splitc_global_add(splitc_global pointer, long elements, size_t element_bytes)
{
    unsigned long place = pointer + (unsigned long)elements * element_bytes;
    return (pointer & ~SPLITC_ADDRESS_MASK) | (place & SPLITC_ADDRESS_MASK);
}

#ifdef __cplusplus
}
#endif

#endif
