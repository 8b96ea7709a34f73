/* What the programs of this directory share: a check that says what is wrong, and the result of the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <split-c/split-c.h>
#include <split-c/control.h>

static int failures;

#define CHECK(condition) \
    do { if (!(condition)) { failures++; printf("%d: line %d: wrong: %s\n", MYPROC, __LINE__, #condition); } } while (0)
#define NEXT ((MYPROC + 1) % PROCS)
#define LAST (PROCS - 1)
#define DONE() do { barrier(); on_one { if (!failures) printf("ok\n"); } return failures != 0; } while (0)
