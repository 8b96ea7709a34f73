/* Split-C (Split-C 2.2). Programs include <split-c/split-c.h>, and <split-c/control.h> for the loops.
 *
 * The attribute names the function of the runtime that carries an operation out; splitcc calls it with the place of the
 * call in the source. A program may define a function of its own with one of these names. */
#ifndef SPLIT_C_SPLIT_C_H
#define SPLIT_C_SPLIT_C_H

#ifndef __SPLITC__
#error "this is Split-C: compile it with splitcc; programs in C include <splitc.h>"
#endif

#include <split-c/control.h>

#define MYPROC (splitc_state.proc)
#define PROCS (splitc_state.procs)
#define PROCSLOG (splitc_state.procs_log)

#define SPLITC_CALLS(name) __attribute__((__splitc_calls__(name)))
#define SPLITC_NAMED(name) __attribute__((__splitc_named__(name)))

/* Everybody together. */
extern void barrier(void) SPLITC_CALLS(splitc_complete_barrier);

/* Completion: of gets and puts; of stores, by bytes that have come here, or everywhere. */
extern void sync(void) SPLITC_CALLS(splitc_sync);
extern int is_sync(void) SPLITC_CALLS(splitc_is_sync);
extern void store_sync(long bytes) SPLITC_CALLS(splitc_store_sync);
extern void reset_store_sync(void) SPLITC_CALLS(splitc_reset_store_sync);
extern void all_store_sync(void) SPLITC_CALLS(splitc_complete_all_store_sync);

/* Bulk: the destination first, then the source, then the number of bytes. */
extern void bulk_read(void *to, const void *global from, unsigned long bytes) SPLITC_CALLS(splitc_read);
extern void bulk_write(void *global to, const void *from, unsigned long bytes) SPLITC_CALLS(splitc_write);
extern void bulk_get(void *to, const void *global from, unsigned long bytes) SPLITC_CALLS(splitc_get);
extern void bulk_put(void *global to, const void *from, unsigned long bytes) SPLITC_CALLS(splitc_put);
extern void bulk_store(void *global to, const void *from, unsigned long bytes) SPLITC_CALLS(splitc_store);

/* Memory: collective, or by one processor. */
extern void *spread all_spread_malloc(long count, unsigned long element_bytes) SPLITC_CALLS(splitc_all_spread_malloc);
extern void all_spread_free(void *spread array) SPLITC_CALLS(splitc_all_spread_free);
extern void *spread spread_malloc(long count, unsigned long element_bytes) SPLITC_CALLS(splitc_spread_malloc);
extern void spread_free(void *spread array) SPLITC_CALLS(splitc_spread_free);

/* Seconds since some moment. */
extern double get_seconds(void) SPLITC_NAMED(splitc_get_seconds);

/* Reductions: the result is on processor 0, or on all; scans: over this processor and those before it. Without a letter: int. */
#define SPLITC_REDUCTION(name, type, c_name)                                                                     \
    extern type all_reduce_to_one_##name(type value) SPLITC_CALLS(splitc_all_reduce_to_one_##c_name);            \
    extern type all_reduce_to_all_##name(type value) SPLITC_CALLS(splitc_all_reduce_to_all_##c_name);            \
    extern type all_scan_##name(type value) SPLITC_CALLS(splitc_all_scan_##c_name);
SPLITC_REDUCTION(add, int, add_i)
SPLITC_REDUCTION(add_i, int, add_i)
SPLITC_REDUCTION(iadd, int, add_i)
SPLITC_REDUCTION(add_ui, unsigned int, add_ui)
SPLITC_REDUCTION(add_l, long, add_l)
SPLITC_REDUCTION(ladd, long, add_l)
SPLITC_REDUCTION(add_ul, unsigned long, add_ul)
SPLITC_REDUCTION(add_f, float, add_f)
SPLITC_REDUCTION(fadd, float, add_f)
SPLITC_REDUCTION(add_d, double, add_d)
SPLITC_REDUCTION(dadd, double, add_d)
SPLITC_REDUCTION(max, int, max_i)
SPLITC_REDUCTION(max_i, int, max_i)
SPLITC_REDUCTION(imax, int, max_i)
SPLITC_REDUCTION(max_ui, unsigned int, max_ui)
SPLITC_REDUCTION(max_l, long, max_l)
SPLITC_REDUCTION(lmax, long, max_l)
SPLITC_REDUCTION(max_ul, unsigned long, max_ul)
SPLITC_REDUCTION(max_f, float, max_f)
SPLITC_REDUCTION(fmax, float, max_f)
SPLITC_REDUCTION(max_d, double, max_d)
SPLITC_REDUCTION(dmax, double, max_d)
SPLITC_REDUCTION(min, int, min_i)
SPLITC_REDUCTION(min_i, int, min_i)
SPLITC_REDUCTION(imin, int, min_i)
SPLITC_REDUCTION(min_ui, unsigned int, min_ui)
SPLITC_REDUCTION(min_l, long, min_l)
SPLITC_REDUCTION(lmin, long, min_l)
SPLITC_REDUCTION(min_ul, unsigned long, min_ul)
SPLITC_REDUCTION(min_f, float, min_f)
SPLITC_REDUCTION(fmin, float, min_f)
SPLITC_REDUCTION(min_d, double, min_d)
SPLITC_REDUCTION(dmin, double, min_d)
SPLITC_REDUCTION(mul, int, mul_i)
SPLITC_REDUCTION(mul_i, int, mul_i)
SPLITC_REDUCTION(imul, int, mul_i)
SPLITC_REDUCTION(mul_ui, unsigned int, mul_ui)
SPLITC_REDUCTION(mul_l, long, mul_l)
SPLITC_REDUCTION(lmul, long, mul_l)
SPLITC_REDUCTION(mul_ul, unsigned long, mul_ul)
SPLITC_REDUCTION(mul_f, float, mul_f)
SPLITC_REDUCTION(fmul, float, mul_f)
SPLITC_REDUCTION(mul_d, double, mul_d)
SPLITC_REDUCTION(dmul, double, mul_d)
SPLITC_REDUCTION(and, int, and_i)
SPLITC_REDUCTION(and_i, int, and_i)
SPLITC_REDUCTION(iand, int, and_i)
SPLITC_REDUCTION(and_ui, unsigned int, and_ui)
SPLITC_REDUCTION(and_l, long, and_l)
SPLITC_REDUCTION(land, long, and_l)
SPLITC_REDUCTION(and_ul, unsigned long, and_ul)
SPLITC_REDUCTION(or, int, or_i)
SPLITC_REDUCTION(or_i, int, or_i)
SPLITC_REDUCTION(ior, int, or_i)
SPLITC_REDUCTION(or_ui, unsigned int, or_ui)
SPLITC_REDUCTION(or_l, long, or_l)
SPLITC_REDUCTION(lor, long, or_l)
SPLITC_REDUCTION(or_ul, unsigned long, or_ul)
SPLITC_REDUCTION(xor, int, xor_i)
SPLITC_REDUCTION(xor_i, int, xor_i)
SPLITC_REDUCTION(ixor, int, xor_i)
SPLITC_REDUCTION(xor_ui, unsigned int, xor_ui)
SPLITC_REDUCTION(xor_l, long, xor_l)
SPLITC_REDUCTION(lxor, long, xor_l)
SPLITC_REDUCTION(xor_ul, unsigned long, xor_ul)
#undef SPLITC_REDUCTION

/* The value of processor 0, everywhere. */
extern int all_bcast(int value) SPLITC_CALLS(splitc_all_bcast_i);
extern int all_bcast_i(int value) SPLITC_CALLS(splitc_all_bcast_i);
extern unsigned int all_bcast_ui(unsigned int value) SPLITC_CALLS(splitc_all_bcast_ui);
extern long all_bcast_l(long value) SPLITC_CALLS(splitc_all_bcast_l);
extern long all_lbcast(long value) SPLITC_CALLS(splitc_all_bcast_l);
extern unsigned long all_bcast_ul(unsigned long value) SPLITC_CALLS(splitc_all_bcast_ul);
extern float all_bcast_f(float value) SPLITC_CALLS(splitc_all_bcast_f);
extern float all_fbcast(float value) SPLITC_CALLS(splitc_all_bcast_f);
extern double all_bcast_d(double value) SPLITC_CALLS(splitc_all_bcast_d);
extern double all_dbcast(double value) SPLITC_CALLS(splitc_all_bcast_d);

/* On processor 0, `values[p]` becomes the `values[0]` of processor p; elsewhere nothing changes. */
extern void all_gather(int *values) SPLITC_CALLS(splitc_all_gather_i);
extern void all_gather_i(int *values) SPLITC_CALLS(splitc_all_gather_i);
extern void all_gather_ui(unsigned int *values) SPLITC_CALLS(splitc_all_gather_ui);
extern void all_gather_l(long *values) SPLITC_CALLS(splitc_all_gather_l);
extern void all_gather_ul(unsigned long *values) SPLITC_CALLS(splitc_all_gather_ul);
extern void all_gather_f(float *values) SPLITC_CALLS(splitc_all_gather_f);
extern void all_gather_d(double *values) SPLITC_CALLS(splitc_all_gather_d);

/* Atomic changes of one word: the value that was there before. Beside them stands atomic(f, pointer, arguments...). */
#define SPLITC_CHANGE(name, type, c_name) \
    extern type name(type *global where, type operand) SPLITC_CALLS(splitc_##c_name);
SPLITC_CHANGE(fetch_and_add, int, fetch_and_add_i)
SPLITC_CHANGE(fetch_and_add_i, int, fetch_and_add_i)
SPLITC_CHANGE(fetch_and_add_ui, unsigned int, fetch_and_add_ui)
SPLITC_CHANGE(fetch_and_add_l, long, fetch_and_add_l)
SPLITC_CHANGE(fetch_and_add_ul, unsigned long, fetch_and_add_ul)
SPLITC_CHANGE(fetch_and_add_f, float, fetch_and_add_f)
SPLITC_CHANGE(fetch_and_add_d, double, fetch_and_add_d)
SPLITC_CHANGE(fetch_and_store, int, fetch_and_store_i)
SPLITC_CHANGE(fetch_and_store_i, int, fetch_and_store_i)
SPLITC_CHANGE(fetch_and_store_ui, unsigned int, fetch_and_store_ui)
SPLITC_CHANGE(fetch_and_store_l, long, fetch_and_store_l)
SPLITC_CHANGE(fetch_and_store_ul, unsigned long, fetch_and_store_ul)
SPLITC_CHANGE(fetch_and_store_f, float, fetch_and_store_f)
SPLITC_CHANGE(fetch_and_store_d, double, fetch_and_store_d)
SPLITC_CHANGE(fetch_and_and, int, fetch_and_and_i)
SPLITC_CHANGE(fetch_and_and_i, int, fetch_and_and_i)
SPLITC_CHANGE(fetch_and_and_ui, unsigned int, fetch_and_and_ui)
SPLITC_CHANGE(fetch_and_and_l, long, fetch_and_and_l)
SPLITC_CHANGE(fetch_and_and_ul, unsigned long, fetch_and_and_ul)
SPLITC_CHANGE(fetch_and_or, int, fetch_and_or_i)
SPLITC_CHANGE(fetch_and_or_i, int, fetch_and_or_i)
SPLITC_CHANGE(fetch_and_or_ui, unsigned int, fetch_and_or_ui)
SPLITC_CHANGE(fetch_and_or_l, long, fetch_and_or_l)
SPLITC_CHANGE(fetch_and_or_ul, unsigned long, fetch_and_or_ul)
SPLITC_CHANGE(fetch_and_xor, int, fetch_and_xor_i)
SPLITC_CHANGE(fetch_and_xor_i, int, fetch_and_xor_i)
SPLITC_CHANGE(fetch_and_xor_ui, unsigned int, fetch_and_xor_ui)
SPLITC_CHANGE(fetch_and_xor_l, long, fetch_and_xor_l)
SPLITC_CHANGE(fetch_and_xor_ul, unsigned long, fetch_and_xor_ul)
SPLITC_CHANGE(fetch_and_max, int, fetch_and_max_i)
SPLITC_CHANGE(fetch_and_max_i, int, fetch_and_max_i)
SPLITC_CHANGE(fetch_and_max_ui, unsigned int, fetch_and_max_ui)
SPLITC_CHANGE(fetch_and_max_l, long, fetch_and_max_l)
SPLITC_CHANGE(fetch_and_max_ul, unsigned long, fetch_and_max_ul)
SPLITC_CHANGE(fetch_and_min, int, fetch_and_min_i)
SPLITC_CHANGE(fetch_and_min_i, int, fetch_and_min_i)
SPLITC_CHANGE(fetch_and_min_ui, unsigned int, fetch_and_min_ui)
SPLITC_CHANGE(fetch_and_min_l, long, fetch_and_min_l)
SPLITC_CHANGE(fetch_and_min_ul, unsigned long, fetch_and_min_ul)
SPLITC_CHANGE(exchange, int, fetch_and_store_i)
#undef SPLITC_CHANGE
extern int test_and_set(int *global where) SPLITC_CALLS(splitc_test_and_set);
extern int compare_and_swap(int *global where, int expected, int value) SPLITC_CALLS(splitc_compare_and_swap_i);
extern int cmp_and_swap(int *global where, int expected, int value) SPLITC_CALLS(splitc_compare_and_swap_i);
extern int compare_and_swap_i(int *global where, int expected, int value) SPLITC_CALLS(splitc_compare_and_swap_i);
extern unsigned int compare_and_swap_ui(unsigned int *global where, unsigned int expected, unsigned int value) SPLITC_CALLS(splitc_compare_and_swap_ui);
extern long compare_and_swap_l(long *global where, long expected, long value) SPLITC_CALLS(splitc_compare_and_swap_l);
extern unsigned long compare_and_swap_ul(unsigned long *global where, unsigned long expected, unsigned long value) SPLITC_CALLS(splitc_compare_and_swap_ul);

#undef SPLITC_CALLS
#undef SPLITC_NAMED

#endif
