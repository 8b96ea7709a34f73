/* Split-C: the interface between compiled programs and the runtime library (decision 0038; Split-C 2, 4.2).
 *
 * Programs compiled by splitcc include this file; programs written in plain C include splitc.h, in C++ splitc.hpp.
 * All names begin with `splitc_` or `SPLITC_`.
 *
 * Memory of a processor that is mapped into this process is reached by inline functions: one comparison, then a load or a
 * store. Everything else, and every error, is a call of the library, which knows the place in the source.
 */
#ifndef SPLITC_ABI_H
#define SPLITC_ABI_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if !defined(__LP64__)
#error "Split-C needs pointers of 64 bits"
#endif

#define SPLITC_ABI_VERSION 1

/* Processor << 48 | address in that processor's memory. 0 is null. Spread pointers are the same. */
typedef unsigned long splitc_global;

/* A place in the program's source, for messages: a static constant for each access. */
typedef struct splitc_place {
    const char *file;
    int line;
} splitc_place;

/* A stretch of a processor's memory that is mapped here. A global address g lies in it if g - origin < reach, and then the
 * 16 bytes from g + shift on do, too. One that is not mapped has a reach of 0. */
struct splitc_span {
    unsigned long origin;
    unsigned long reach;
    unsigned long shift;
};

/* What is mapped of a processor: one cache line. */
struct splitc_window {
    struct splitc_span segment; /* heap, spread arrays, stack */
    struct splitc_span data;    /* static data */
    unsigned long *stored;      /* at that processor: how many bytes this one has stored there */
    unsigned long reserved;
};

/* What the inline functions know of the job. It is written by the library only. */
struct splitc_state {
    int proc;  /* MYPROC */
    int procs; /* PROCS */
    int procs_log; /* PROCSLOG: the logarithm of PROCS to base 2, rounded down */
    int abi_version;
    const volatile unsigned *attention; /* not 0: somebody asks this processor for an atomic procedure */
};

/* The state and the windows lie at fixed addresses, outside the memory that processors share. */
#define SPLITC_STATE_ADDRESS 0x200000000000ul
#define SPLITC_WINDOWS_ADDRESS 0x200000010000ul
/* Where the segment of every processor begins. */
#define SPLITC_SEGMENT_ADDRESS 0x200100000000ul
#define SPLITC_PROCS_MAX 65536
#define splitc_state (*(const struct splitc_state *)SPLITC_STATE_ADDRESS)

/* --- Start and end ------------------------------------------------------------------------------------------------------- */

/* Registers a function that runs on every processor after the start of the runtime and before the program's main function, in
 * the order of registration: for static spread arrays. Constructors call it. */
void splitc_at_start(void (*function)(void));
/* Starts the runtime, shares the static data between the two addresses, runs `program` on a stack in the segment, ends the
 * runtime when every processor has come back from it, and returns its result. */
int splitc_start(int argc, char **argv, int (*program)(int, char **), void *data_start, void *data_end);
/* Ends the job with a message, "processor 3: file:line: ...", and exit status 1. */
void splitc_fail_with(const splitc_place *place, const char *text) __attribute__((noreturn, cold));

static __inline__ void splitc_fail(const splitc_place *place, const char *format, ...)
    __attribute__((noreturn, cold, unused, format(printf, 2, 3)));
static __inline__ void splitc_fail(const splitc_place *place, const char *format, ...)
{
    char text[1024];
    __builtin_va_list arguments;
    __builtin_va_start(arguments, format);
    __builtin_vsnprintf(text, sizeof text, format, arguments);
    __builtin_va_end(arguments);
    splitc_fail_with(place, text);
}

/* --- Slow paths: called by the inline functions below ---------------------------------------------------------------------- */

void splitc_slow_read(void *to, splitc_global from, size_t bytes, const splitc_place *place) __attribute__((cold));
void splitc_slow_write(splitc_global to, const void *from, size_t bytes, const splitc_place *place) __attribute__((cold));
void splitc_slow_get(void *to, splitc_global from, size_t bytes, const splitc_place *place) __attribute__((cold));
void splitc_slow_put(splitc_global to, const void *from, size_t bytes, const splitc_place *place) __attribute__((cold));
void splitc_slow_store(splitc_global to, const void *from, size_t bytes, const splitc_place *place) __attribute__((cold));
void splitc_slow_poll(void) __attribute__((cold));

/* --- Waiting, and everybody together ---------------------------------------------------------------------------------------- */

void splitc_sync(const splitc_place *place);    /* until all gets and puts of this processor are complete */
int splitc_is_sync(const splitc_place *place);  /* whether they are */
void splitc_store_sync(long bytes, const splitc_place *place); /* until so many more bytes were stored here */
void splitc_reset_store_sync(const splitc_place *place);            /* the next store_sync counts from zero */
void splitc_all_store_sync(const splitc_place *place); /* collective: until all stores of all processors are complete */
void splitc_barrier(const splitc_place *place);
void splitc_poll(void); /* takes what has come, and carries out atomic procedures */
double splitc_get_seconds(void);

enum splitc_type {
    SPLITC_INT = 0,
    SPLITC_UINT = 1,
    SPLITC_LONG = 2,
    SPLITC_ULONG = 3,
    SPLITC_FLOAT = 4,
    SPLITC_DOUBLE = 5
};

enum splitc_operation {
    SPLITC_ADD = 0,
    SPLITC_MAX = 1,
    SPLITC_MIN = 2,
    SPLITC_AND = 3,
    SPLITC_OR = 4,
    SPLITC_XOR = 5,
    SPLITC_MUL = 6,
    SPLITC_SWAP = 7,
    SPLITC_COMPARE_SWAP = 8
};

/* Collective. *value is this processor's contribution, and afterwards the result: on all processors, or, with to_one, on
 * processor 0, while it stays as it is on the others. ADD to XOR and MUL; the bit operations for integers only. */
void splitc_all_reduce(void *value, int type, int operation, int to_one, const splitc_place *place);
/* Collective. *value becomes the value over this processor and those before it. */
void splitc_all_scan(void *value, int type, int operation, const splitc_place *place);
/* Collective. The bytes at `value` on processor `root` are copied to `value` on all. */
void splitc_all_bcast(void *value, size_t bytes, int root, const splitc_place *place);

/* --- Atomic operations -------------------------------------------------------------------------------------------------------- */

/* Changes the word at `where` at once and for all, and tells what it was before (unless `before` is null). Of type INT to DOUBLE;
 * ADD, SWAP for all types, MAX, MIN, AND, OR, XOR, COMPARE_SWAP for integers. `expected` is for COMPARE_SWAP only. */
void splitc_fetch_op(splitc_global where, int type, int operation, const void *operand, const void *expected, void *before,
                     const splitc_place *place);

/* An atomic procedure: runs at the owner of `where`, with the local address, the packed arguments and room for the result. */
typedef void splitc_handler(void *where, const void *arguments, void *result);
#define SPLITC_ARGUMENT_BYTES_MAX 4096
#define SPLITC_RESULT_BYTES_MAX 4096
/* Blocks if result_bytes > 0. Otherwise it is complete after the next sync() of this processor. */
void splitc_atomic(splitc_global where, splitc_handler *handler, const void *arguments, size_t argument_bytes, void *result,
                   size_t result_bytes, const splitc_place *place);

/* --- Input and output: collective ---------------------------------------------------------------------------------------------- */

/* What each processor prints appears on the standard output of processor 0, in the order of their numbers. */
void splitc_all_print_text(const char *text, size_t bytes, const splitc_place *place);
static __inline__ void splitc_all_printf(const splitc_place *place, const char *format, ...)
    __attribute__((unused, format(printf, 2, 3)));
/* The elements of a spread array from a file, and into one, where they lie one after the other. How many whole elements were read or
 * written, or -1, with errno set, on all processors. Over several hosts it needs a file system that they share. */
long splitc_all_read_file(const char *path, splitc_global array, long count, size_t element_bytes, const splitc_place *place);
long splitc_all_write_file(const char *path, splitc_global array, long count, size_t element_bytes, const splitc_place *place);

/* --- Memory ---------------------------------------------------------------------------------------------------------------------- */

/* Collective: memory for `count` elements, spread cyclically. A spread pointer to element 0, which lies on processor 0. */
splitc_global splitc_all_spread_malloc(long count, size_t element_bytes, const splitc_place *place);
void splitc_all_spread_free(splitc_global array, const splitc_place *place);
/* The same, by one processor, without the others' help. */
splitc_global splitc_spread_malloc(long count, size_t element_bytes, const splitc_place *place);
void splitc_spread_free(splitc_global array, const splitc_place *place);
/* The shared heap of this processor. Free and realloc also take memory of the C library. */
void *splitc_malloc(size_t bytes);
void *splitc_calloc(size_t count, size_t bytes);
void *splitc_realloc(void *memory, size_t bytes);
void *splitc_memalign(size_t alignment, size_t bytes);
void *splitc_valloc(size_t bytes);
int splitc_posix_memalign(void **memory, size_t alignment, size_t bytes);
char *splitc_strdup(const char *text);
char *splitc_strndup(const char *text, size_t most);
void splitc_free(void *memory);

static __inline__ void splitc_all_printf(const splitc_place *place, const char *format, ...)
{
    char text[1024], *all = text;
    int length;
    __builtin_va_list arguments;
    __builtin_va_start(arguments, format);
    length = __builtin_vsnprintf(text, sizeof text, format, arguments);
    __builtin_va_end(arguments);
    if (length < 0)
        splitc_fail_with(place, "all_printf has a format that cannot be printed");
    if ((size_t)length >= sizeof text) {
        all = (char *)splitc_malloc((size_t)length + 1);
        if (!all)
            splitc_fail_with(place, "all_printf has no memory for so long a text");
        __builtin_va_start(arguments, format);
        length = __builtin_vsnprintf(all, (size_t)length + 1, format, arguments);
        __builtin_va_end(arguments);
    }
    splitc_all_print_text(all, (size_t)length, place);
    if (all != text)
        splitc_free(all);
}

/* --- Global addresses ------------------------------------------------------------------------------------------------------------ */

#define SPLITC_ADDRESS_MASK 0xfffffffffffful
#define SPLITC_INLINE static __inline__ __attribute__((always_inline, unused))
#define SPLITC_UNLIKELY(x) __builtin_expect(!!(x), 0)

SPLITC_INLINE splitc_global splitc_to_global(int proc, const volatile void *address)
{
    /* toglobal(p, 0) is null for every p. */
    return address ? (splitc_global)(unsigned)proc << 48 | ((unsigned long)address & SPLITC_ADDRESS_MASK) : 0;
}

SPLITC_INLINE void *splitc_to_local(splitc_global pointer) { return (void *)(pointer & SPLITC_ADDRESS_MASK); }

SPLITC_INLINE int splitc_to_proc(splitc_global pointer) { return (int)(pointer >> 48); }

/* Steps of a spread pointer go from processor to processor, and after the last to the next element of the first. */
SPLITC_INLINE splitc_global splitc_spread_add(splitc_global pointer, long elements, size_t element_bytes)
{
    long procs = splitc_state.procs;
    long at = (long)(pointer >> 48) + elements;
    long rows, proc;
    if ((procs & (procs - 1)) == 0) {
        proc = at & (procs - 1);
        rows = at >> splitc_state.procs_log;
    } else {
        rows = at / procs;
        proc = at % procs;
        if (proc < 0) {
            proc += procs;
            rows -= 1;
        }
    }
    return (splitc_global)proc << 48 |
           ((pointer + (unsigned long)rows * element_bytes) & SPLITC_ADDRESS_MASK);
}

SPLITC_INLINE long splitc_spread_difference(splitc_global to, splitc_global from, size_t element_bytes)
{
    long bytes = (long)((to & SPLITC_ADDRESS_MASK) - (from & SPLITC_ADDRESS_MASK));
    long rows = element_bytes ? bytes / (long)element_bytes : 0;
    return rows * splitc_state.procs + splitc_to_proc(to) - splitc_to_proc(from);
}

/* --- Accesses ------------------------------------------------------------------------------------------------------------------------ */

SPLITC_INLINE const struct splitc_window *splitc_window_of(splitc_global pointer)
{
    return (const struct splitc_window *)(SPLITC_WINDOWS_ADDRESS + (pointer >> 48) * sizeof(struct splitc_window));
}

/* Where `bytes` bytes (a constant, 16 at most) at that global address are in this process; null if they are not mapped. */
SPLITC_INLINE char *splitc_find(splitc_global pointer)
{
    const struct splitc_window *window = splitc_window_of(pointer);
    if (__builtin_expect(pointer - window->segment.origin < window->segment.reach, 1))
        return (char *)(pointer + window->segment.shift);
    if (__builtin_expect(pointer - window->data.origin < window->data.reach, 1))
        return (char *)(pointer + window->data.shift);
    return (char *)0;
}

/* The same for any number of bytes; also null for some that lie in the last bytes of a stretch. */
SPLITC_INLINE char *splitc_find_all(splitc_global pointer, size_t bytes)
{
    const struct splitc_window *window = splitc_window_of(pointer);
    unsigned long offset = pointer - window->segment.origin;
    if (__builtin_expect(offset < window->segment.reach && bytes <= window->segment.reach - offset, 1))
        return (char *)(pointer + window->segment.shift);
    offset = pointer - window->data.origin;
    if (__builtin_expect(offset < window->data.reach && bytes <= window->data.reach - offset, 1))
        return (char *)(pointer + window->data.shift);
    return (char *)0;
}

#define SPLITC_WORD_TYPE(bits, type)                                                                                              \
    typedef struct __attribute__((packed, may_alias)) {                                                                           \
        type value;                                                                                                               \
    } splitc_word##bits
SPLITC_WORD_TYPE(8, unsigned char);
SPLITC_WORD_TYPE(16, unsigned short);
SPLITC_WORD_TYPE(32, unsigned int);
SPLITC_WORD_TYPE(64, unsigned long);
#undef SPLITC_WORD_TYPE

#define SPLITC_IS_WORD(bytes)                                                                                                     \
    (__builtin_constant_p(bytes) && ((bytes) == 1 || (bytes) == 2 || (bytes) == 4 || (bytes) == 8 || (bytes) == 16))

/* Volatile: each access is made, once, and in the program's order. */
SPLITC_INLINE void splitc_load(void *to, const char *from, size_t bytes)
{
    switch (bytes) {
    case 1:
        ((splitc_word8 *)to)->value = ((const volatile splitc_word8 *)from)->value;
        break;
    case 2:
        ((splitc_word16 *)to)->value = ((const volatile splitc_word16 *)from)->value;
        break;
    case 4:
        ((splitc_word32 *)to)->value = ((const volatile splitc_word32 *)from)->value;
        break;
    case 8:
        ((splitc_word64 *)to)->value = ((const volatile splitc_word64 *)from)->value;
        break;
    default: {
        unsigned long low = ((const volatile splitc_word64 *)from)->value;
        unsigned long high = ((const volatile splitc_word64 *)(from + 8))->value;
        ((splitc_word64 *)to)->value = low;
        ((splitc_word64 *)((char *)to + 8))->value = high;
    }
    }
}

SPLITC_INLINE void splitc_save(char *to, const void *from, size_t bytes)
{
    switch (bytes) {
    case 1:
        ((volatile splitc_word8 *)to)->value = ((const splitc_word8 *)from)->value;
        break;
    case 2:
        ((volatile splitc_word16 *)to)->value = ((const splitc_word16 *)from)->value;
        break;
    case 4:
        ((volatile splitc_word32 *)to)->value = ((const splitc_word32 *)from)->value;
        break;
    case 8:
        ((volatile splitc_word64 *)to)->value = ((const splitc_word64 *)from)->value;
        break;
    default: {
        unsigned long low = ((const splitc_word64 *)from)->value;
        unsigned long high = ((const splitc_word64 *)((const char *)from + 8))->value;
        ((volatile splitc_word64 *)to)->value = low;
        ((volatile splitc_word64 *)(to + 8))->value = high;
    }
    }
}

/* Not left out and not moved, as others may change what is copied, or look at it. */
SPLITC_INLINE void splitc_copy(void *to, const void *from, size_t bytes)
{
    __asm__ __volatile__("" ::: "memory");
    __builtin_memmove(to, from, bytes);
    __asm__ __volatile__("" ::: "memory");
}

/* A processor that waits for an atomic procedure of this one is served at the accesses of this one, too. */
SPLITC_INLINE void splitc_attend(void)
{
    if (SPLITC_UNLIKELY(*splitc_state.attention))
        splitc_slow_poll();
}

/* Where any number of bytes are; a word in fewer instructions. */
SPLITC_INLINE char *splitc_find_any(splitc_global pointer, size_t bytes)
{
    return SPLITC_IS_WORD(bytes) ? splitc_find(pointer) : splitc_find_all(pointer, bytes);
}

/* From mapped memory, and into it. */
SPLITC_INLINE void splitc_load_any(void *to, const char *from, size_t bytes)
{
    if (SPLITC_IS_WORD(bytes))
        splitc_load(to, from, bytes);
    else
        splitc_copy(to, from, bytes);
}

SPLITC_INLINE void splitc_save_any(char *to, const void *from, size_t bytes)
{
    if (SPLITC_IS_WORD(bytes))
        splitc_save(to, from, bytes);
    else
        splitc_copy(to, from, bytes);
}

/* A blocking read: the bytes are at `to` afterwards. */
SPLITC_INLINE void splitc_read(void *to, splitc_global from, size_t bytes, const splitc_place *place)
{
    const char *at = splitc_find_any(from, bytes);
    if (__builtin_expect(at != (const char *)0, 1)) {
        splitc_attend();
        splitc_load_any(to, at, bytes);
        return;
    }
    splitc_slow_read(to, from, bytes, place);
}

/* A blocking write: the bytes are in their place afterwards. */
SPLITC_INLINE void splitc_write(splitc_global to, const void *from, size_t bytes, const splitc_place *place)
{
    char *at = splitc_find_any(to, bytes);
    if (__builtin_expect(at != (char *)0, 1)) {
        splitc_attend();
        splitc_save_any(at, from, bytes);
        return;
    }
    splitc_slow_write(to, from, bytes, place);
}

/* `:=` from a global place: the bytes are at `to` after the next sync. */
SPLITC_INLINE void splitc_get(void *to, splitc_global from, size_t bytes, const splitc_place *place)
{
    const char *at = splitc_find_any(from, bytes);
    if (__builtin_expect(at != (const char *)0, 1)) {
        splitc_load_any(to, at, bytes);
        return;
    }
    splitc_slow_get(to, from, bytes, place);
}

/* `:=` to a global place: the bytes are copied when this returns, and in their place after the next sync. */
SPLITC_INLINE void splitc_put(splitc_global to, const void *from, size_t bytes, const splitc_place *place)
{
    char *at = splitc_find_any(to, bytes);
    if (__builtin_expect(at != (char *)0, 1)) {
        splitc_save_any(at, from, bytes);
        return;
    }
    splitc_slow_put(to, from, bytes, place);
}

/* `:-`: one way; the owner of the place counts the bytes. */
SPLITC_INLINE void splitc_store(splitc_global to, const void *from, size_t bytes, const splitc_place *place)
{
    char *at = splitc_find_any(to, bytes);
    if (__builtin_expect(at != (char *)0, 1)) {
        unsigned long *stored = splitc_window_of(to)->stored;
        splitc_save_any(at, from, bytes);
        /* Only this processor writes that counter. */
        __atomic_store_n(stored, *stored + bytes, __ATOMIC_RELEASE);
        return;
    }
    splitc_slow_store(to, from, bytes, place);
}

/* --- Typed families -------------------------------------------------------------------------------------------------------------------- */

#define SPLITC_FAMILY_OF_REDUCTION(suffix, type, code, name, operation)                                                           \
    SPLITC_INLINE type splitc_all_reduce_to_one_##name##suffix(type value, const splitc_place *place)                             \
    {                                                                                                                             \
        splitc_all_reduce(&value, code, operation, 1, place);                                                                     \
        return value;                                                                                                             \
    }                                                                                                                             \
    SPLITC_INLINE type splitc_all_reduce_to_all_##name##suffix(type value, const splitc_place *place)                             \
    {                                                                                                                             \
        splitc_all_reduce(&value, code, operation, 0, place);                                                                     \
        return value;                                                                                                             \
    }                                                                                                                             \
    SPLITC_INLINE type splitc_all_scan_##name##suffix(type value, const splitc_place *place)                                      \
    {                                                                                                                             \
        splitc_all_scan(&value, code, operation, place);                                                                          \
        return value;                                                                                                             \
    }

#define SPLITC_FAMILY_OF_CHANGE(suffix, type, code, name, operation)                                                              \
    SPLITC_INLINE type splitc_fetch_and_##name##suffix(splitc_global where, type operand, const splitc_place *place)              \
    {                                                                                                                             \
        type before;                                                                                                              \
        splitc_fetch_op(where, code, operation, &operand, NULL, &before, place);                                                  \
        return before;                                                                                                            \
    }

/* Where a word is that can be changed by an instruction; null also if it is not aligned, which the library refuses. */
SPLITC_INLINE char *splitc_find_aligned(splitc_global pointer, size_t bytes)
{
    char *at = splitc_find(pointer);
    return ((unsigned long)at & (bytes - 1)) == 0 ? at : (char *)0;
}

/* A change of a word: by an atomic operation of the compiler where the word is mapped. */
#define SPLITC_FAMILY_OF_WORD_CHANGE(suffix, type, code, name, operation, builtin)                                                \
    SPLITC_INLINE type splitc_fetch_and_##name##suffix(splitc_global where, type operand, const splitc_place *place)              \
    {                                                                                                                             \
        typedef type __attribute__((may_alias)) splitc_aliasing;                                                                  \
        char *at = splitc_find_aligned(where, sizeof(type));                                                                      \
        type before;                                                                                                              \
        if (__builtin_expect(at != (char *)0, 1)) {                                                                               \
            splitc_attend();                                                                                                      \
            return builtin((splitc_aliasing *)at, operand, __ATOMIC_SEQ_CST);                                                     \
        }                                                                                                                         \
        splitc_fetch_op(where, code, operation, &operand, NULL, &before, place);                                                  \
        return before;                                                                                                            \
    }

#define SPLITC_FAMILY(suffix, type, code)                                                                                         \
    SPLITC_FAMILY_OF_REDUCTION(suffix, type, code, add, SPLITC_ADD)                                                               \
    SPLITC_FAMILY_OF_REDUCTION(suffix, type, code, max, SPLITC_MAX)                                                               \
    SPLITC_FAMILY_OF_REDUCTION(suffix, type, code, min, SPLITC_MIN)                                                               \
    SPLITC_FAMILY_OF_REDUCTION(suffix, type, code, mul, SPLITC_MUL)                                                               \
    SPLITC_INLINE type splitc_all_bcast##suffix(type value, const splitc_place *place)                                            \
    {                                                                                                                             \
        splitc_all_bcast(&value, sizeof value, 0, place);                                                                         \
        return value;                                                                                                             \
    }                                                                                                                             \
    SPLITC_INLINE void splitc_all_gather##suffix(type *values, const splitc_place *place)                                         \
    {                                                                                                                             \
        type of_one, own = values[0];                                                                                             \
        int root;                                                                                                                 \
        for (root = 0; root < splitc_state.procs; root++) {                                                                       \
            of_one = own;                                                                                                         \
            splitc_all_bcast(&of_one, sizeof of_one, root, place);                                                                \
            if (splitc_state.proc == 0)                                                                                           \
                values[root] = of_one;                                                                                            \
        }                                                                                                                         \
    }

#define SPLITC_FAMILY_OF_INTEGERS(suffix, type, code)                                                                             \
    SPLITC_FAMILY(suffix, type, code)                                                                                             \
    SPLITC_FAMILY_OF_REDUCTION(suffix, type, code, and, SPLITC_AND)                                                               \
    SPLITC_FAMILY_OF_REDUCTION(suffix, type, code, or, SPLITC_OR)                                                                 \
    SPLITC_FAMILY_OF_REDUCTION(suffix, type, code, xor, SPLITC_XOR)                                                               \
    SPLITC_FAMILY_OF_WORD_CHANGE(suffix, type, code, add, SPLITC_ADD, __atomic_fetch_add)                                         \
    SPLITC_FAMILY_OF_WORD_CHANGE(suffix, type, code, and, SPLITC_AND, __atomic_fetch_and)                                         \
    SPLITC_FAMILY_OF_WORD_CHANGE(suffix, type, code, or, SPLITC_OR, __atomic_fetch_or)                                            \
    SPLITC_FAMILY_OF_WORD_CHANGE(suffix, type, code, xor, SPLITC_XOR, __atomic_fetch_xor)                                         \
    SPLITC_FAMILY_OF_WORD_CHANGE(suffix, type, code, store, SPLITC_SWAP, __atomic_exchange_n)                                     \
    SPLITC_FAMILY_OF_CHANGE(suffix, type, code, max, SPLITC_MAX)                                                                  \
    SPLITC_FAMILY_OF_CHANGE(suffix, type, code, min, SPLITC_MIN)                                                                  \
    SPLITC_INLINE type splitc_compare_and_swap##suffix(splitc_global where, type expected, type value,                            \
                                                       const splitc_place *place)                                                 \
    {                                                                                                                             \
        typedef type __attribute__((may_alias)) splitc_aliasing;                                                                  \
        char *at = splitc_find_aligned(where, sizeof(type));                                                                      \
        type before;                                                                                                              \
        if (__builtin_expect(at != (char *)0, 1)) {                                                                               \
            splitc_attend();                                                                                                      \
            __atomic_compare_exchange_n((splitc_aliasing *)at, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);          \
            return expected;                                                                                                      \
        }                                                                                                                         \
        splitc_fetch_op(where, code, SPLITC_COMPARE_SWAP, &value, &expected, &before, place);                                     \
        return before;                                                                                                            \
    }

#define SPLITC_FAMILY_OF_NUMBERS(suffix, type, code)                                                                              \
    SPLITC_FAMILY(suffix, type, code)                                                                                             \
    SPLITC_FAMILY_OF_CHANGE(suffix, type, code, add, SPLITC_ADD)                                                                  \
    SPLITC_FAMILY_OF_CHANGE(suffix, type, code, store, SPLITC_SWAP)

/* splitc_all_reduce_to_one_add_i, splitc_all_scan_max_d, splitc_all_bcast_l, splitc_fetch_and_add_i, ... */
SPLITC_FAMILY_OF_INTEGERS(_i, int, SPLITC_INT)
SPLITC_FAMILY_OF_INTEGERS(_ui, unsigned int, SPLITC_UINT)
SPLITC_FAMILY_OF_INTEGERS(_l, long, SPLITC_LONG)
SPLITC_FAMILY_OF_INTEGERS(_ul, unsigned long, SPLITC_ULONG)
SPLITC_FAMILY_OF_NUMBERS(_f, float, SPLITC_FLOAT)
SPLITC_FAMILY_OF_NUMBERS(_d, double, SPLITC_DOUBLE)

#ifdef __cplusplus
}
#endif

#endif
