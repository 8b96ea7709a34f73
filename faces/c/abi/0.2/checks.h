/* What the programs of the tests say when something is not so. */
#ifndef CHECKS_H
#define CHECKS_H

#include <hamlyn.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static hamlyn_error error;
static const char *who = "";

#define MINUTE INT64_C(60000000000)

static inline void check(int holds, const char *what, int line) {
    if (!holds) {
        fprintf(stderr, "%s line %d: not so: %s: status %d: %s\n", who, line, what, (int)error.status, error.text);
        _exit(1);
    }
}

#define IS(condition) check((condition), #condition, __LINE__)
#define OK(call) (memset(&error, 0, sizeof error), IS((call) == HAMLYN_OK))
/* An error of that status, whose text says that. */
#define GETS(expected, said, call)                                                                                \
    (memset(&error, 0, sizeof error), IS((call) == (expected)), IS(error.status == (expected)),                   \
     IS(strstr(error.text, (said)) != NULL))

#endif
