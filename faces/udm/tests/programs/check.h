/* Shared by the programs of the tests. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of the last error: udm_error_text or crl_error_text. */
#ifndef CHECK_TEXT
#define CHECK_TEXT udm_error_text
#endif

/* Fails the program unless two numbers are equal. */
#define EQUAL(found, expected)                                                                     \
    do {                                                                                           \
        long long found_ = (long long)(found), expected_ = (long long)(expected);                  \
        if (found_ != expected_) {                                                                 \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld (%s)\n", __FILE__, __LINE__, #found,      \
                    found_, expected_, CHECK_TEXT());                                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define TRUE(condition) EQUAL(!!(condition), 1)
#define GOOD(call) EQUAL(call, 0)
/* Fails the program unless a call gives this code, and a text that has these words. */
#define GIVES(call, code, words)                                                                   \
    do {                                                                                           \
        EQUAL(call, code);                                                                         \
        if (!strstr(CHECK_TEXT(), words)) {                                                        \
            fprintf(stderr, "%s:%d: %s says: %s\n", __FILE__, __LINE__, #call, CHECK_TEXT());      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* A wait that only a fault makes long. */
#define LONG 60000

#endif
