/* Split-C: input and output of all processors together. Each is called by all.
 *
 * all_printf(format, ...)                       what each prints appears in the order of processors, on processor 0
 * all_read_file(path, array, count, bytes)      elements of a spread array from a file, where they lie one after the other
 * all_write_file(path, array, count, bytes)     and into one
 *
 * The last two return how many elements there were, or -1, with errno set, on all processors. */
#ifndef SPLIT_C_IO_H
#define SPLIT_C_IO_H

#include <split-c/split-c.h>

#define all_printf(...)                                                          \
    ({                                                                           \
        static const splitc_place splitc_here = {__FILE__, __LINE__};            \
        splitc_all_printf(&splitc_here, __VA_ARGS__);                            \
    })

extern long all_read_file(const char *path, void *spread array, long count, unsigned long element_bytes)
    __attribute__((__splitc_calls__(splitc_all_read_file)));
extern long all_write_file(const char *path, const void *spread array, long count, unsigned long element_bytes)
    __attribute__((__splitc_calls__(splitc_all_write_file)));

#endif
