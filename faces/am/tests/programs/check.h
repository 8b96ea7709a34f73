/* Shared by the programs of the tests. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Fails the program unless two numbers are equal. */
#define EQUAL(found, expected)                                                                                       \
    do {                                                                                                             \
        long long found_ = (long long)(found), expected_ = (long long)(expected);                                    \
        if (found_ != expected_) {                                                                                   \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld (%s)\n", __FILE__, __LINE__, #found, found_, expected_,     \
                    hamlyn_am_error_text());                                                                         \
            exit(1);                                                                                                 \
        }                                                                                                            \
    } while (0)
#define GOOD(call) EQUAL(call, AM_OK)
/* Fails the program unless a call gives this code, and a text that has these words. */
#define GIVES(call, code, words)                                                                                     \
    do {                                                                                                             \
        EQUAL(call, code);                                                                                           \
        if (!strstr(hamlyn_am_error_text(), words)) {                                                                \
            fprintf(stderr, "%s:%d: %s says: %s\n", __FILE__, __LINE__, #call, hamlyn_am_error_text());              \
            exit(1);                                                                                                 \
        }                                                                                                            \
    } while (0)

/* Polls until the condition holds. Fails after a minute. */
#define UNTIL(bundle, condition)                                                                                     \
    do {                                                                                                             \
        int looks_ = 0;                                                                                              \
        GOOD(AM_SetEventMask(bundle, AM_NOTEMPTY));                                                                  \
        while (!(condition)) {                                                                                       \
            int code_ = AMX_WaitSemaFor(bundle, 100);                                                                \
            if (code_ != AM_OK) EQUAL(code_, AM_ERR_NOT_SENT);                                                       \
            if (++looks_ > 100000 || (code_ != AM_OK && looks_ > 600)) {                                             \
                fprintf(stderr, "%s:%d: not in a minute: %s\n", __FILE__, __LINE__, #condition);                     \
                exit(1);                                                                                             \
            }                                                                                                        \
        }                                                                                                            \
    } while (0)

#endif
