/* Functions with variable arguments as they were written before C had prototypes (C compilers of today refuse this header):
 *
 *     message(va_alist) va_dcl { va_list list; va_start(list); ... va_arg(list, int) ... }
 *
 * splitcc knows the name of the last parameter. */
#ifndef SPLIT_C_OLD_VARARGS_H
#define SPLIT_C_OLD_VARARGS_H

/* The type, as <stdio.h> needs it, too. */
#define __need___va_list
#include <stdarg.h>
#ifndef _VA_LIST_DEFINED
#define _VA_LIST_DEFINED
typedef __gnuc_va_list va_list;
#endif

#define va_alist __builtin_va_alist
#define va_dcl int __builtin_va_alist;

#undef va_start
#undef va_arg
#undef va_end
#define va_start(list) __builtin_va_start(list, 0)
#define va_arg(list, type) __builtin_va_arg(list, type)
#define va_end(list) __builtin_va_end(list)

#endif
