/* Most of what splitc.h has, checked on any number of processors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "splitc.h"

#define CHECK(condition)                                                                                                          \
    do {                                                                                                                          \
        if (!(condition))                                                                                                         \
            splitc_fail(SPLITC_HERE, "check failed: %s", #condition);                                                             \
    } while (0)

static long word = 5;
static int zeroed[100];
static char text[] = "text";

static void add(void *where, const void *arguments, void *result)
{
    long before = *(long *)where;
    long argument;
    memcpy(&argument, arguments, sizeof argument);
    *(long *)where = before + argument;
    if (result)
        memcpy(result, &before, sizeof before);
}

static void accesses(void)
{
    int next = (MYPROC + 1) % PROCS, before = (MYPROC + PROCS - 1) % PROCS, i;
    int on_stack = MYPROC * 3;
    static splitc_global stacks[1];
    long got[50];
    char bulk[5000], other[5000];
    splitc_global word_there = splitc_to_global(next, &word);

    word = MYPROC + 100;
    stacks[0] = splitc_to_global(MYPROC, &on_stack);
    splitc_barrier(SPLITC_HERE);
    CHECK(splitc_read_long(word_there) == next + 100);
    CHECK(splitc_read_int(splitc_read_global(splitc_to_global(next, stacks))) == next * 3);
    splitc_barrier(SPLITC_HERE);
    splitc_write_long(word_there, MYPROC * 7);
    splitc_write_char(splitc_to_global(next, text + 1), (char)('0' + MYPROC % 10));
    splitc_barrier(SPLITC_HERE);
    CHECK(word == before * 7);
    CHECK(text[0] == 't' && text[1] == '0' + before % 10 && text[2] == 'x');
    for (i = 0; i < 50; i++)
        splitc_put_int(splitc_to_global(next, &zeroed[i]), MYPROC * 1000 + i);
    splitc_sync(SPLITC_HERE);
    splitc_barrier(SPLITC_HERE);
    for (i = 0; i < 50; i++)
        CHECK(zeroed[i] == before * 1000 + i);
    for (i = 0; i < 50; i++)
        splitc_get_long(&got[i], splitc_to_global(next, &word));
    splitc_sync(SPLITC_HERE);
    CHECK(splitc_is_sync(SPLITC_HERE));
    for (i = 0; i < 50; i++)
        CHECK(got[i] == MYPROC * 7);
    for (i = 0; i < 5000; i++)
        bulk[i] = (char)(MYPROC + i);
    splitc_barrier(SPLITC_HERE);
    stacks[0] = splitc_to_global(MYPROC, bulk);
    splitc_barrier(SPLITC_HERE);
    splitc_bulk_read(other, splitc_read_global(splitc_to_global(next, stacks)), 5000);
    for (i = 0; i < 5000; i++)
        CHECK(other[i] == (char)(next + i));
    memset(other, 0, sizeof other);
    splitc_bulk_get(other, splitc_read_global(splitc_to_global(next, stacks)), 4999);
    splitc_sync(SPLITC_HERE);
    for (i = 0; i < 4999; i++)
        CHECK(other[i] == (char)(next + i));
    splitc_barrier(SPLITC_HERE);
}

static void stores(void)
{
    splitc_global array = splitc_all_spread_malloc(PROCS * 40L, sizeof(int), SPLITC_HERE);
    int *own = (int *)splitc_to_local(array);
    int round, i;

    for (round = 1; round <= 10; round++) {
        for (i = 0; i < PROCS * 40; i++)
            if (i / 40 == MYPROC)
                splitc_store_int(splitc_spread_add(array, i, sizeof(int)), i * round);
        if (round % 2) {
            splitc_all_store_sync(SPLITC_HERE);
        } else {
            splitc_store_sync(40 * (long)sizeof(int), SPLITC_HERE);
        }
        for (i = 0; i < 40; i++)
            CHECK(own[i] == (i * PROCS + MYPROC) * round);
        splitc_barrier(SPLITC_HERE);
    }
    splitc_all_spread_free(array, SPLITC_HERE);
}

static void atomics(void)
{
    long one = 1, before, i;
    splitc_global first = splitc_to_global(0, &word);

    word = 0;
    splitc_barrier(SPLITC_HERE);
    for (i = 0; i < 30; i++) {
        splitc_atomic(first, add, &one, sizeof one, &before, sizeof before, SPLITC_HERE);
        CHECK(before >= i);
        splitc_atomic(first, add, &one, sizeof one, NULL, 0, SPLITC_HERE);
    }
    splitc_sync(SPLITC_HERE);
    splitc_barrier(SPLITC_HERE);
    CHECK(splitc_read_long(first) == 60L * PROCS);
    splitc_barrier(SPLITC_HERE);
    for (i = 0; i < 30; i++)
        CHECK(splitc_fetch_and_add_l(first, 2, SPLITC_HERE) >= 60L * PROCS + 2 * i);
    splitc_barrier(SPLITC_HERE);
    CHECK(splitc_read_long(first) == 120L * PROCS);
    splitc_barrier(SPLITC_HERE);
    splitc_fetch_and_max_ul(first, 10000UL + (unsigned long)MYPROC, SPLITC_HERE);
    splitc_barrier(SPLITC_HERE);
    CHECK(splitc_read_long(first) == 10000 + PROCS - 1);
    splitc_barrier(SPLITC_HERE);
}

static void collectives(void)
{
    int sum = PROCS * (PROCS - 1) / 2;
    double fraction;
    char name[20] = "";
    double *gathered = malloc(PROCS * sizeof *gathered);
    int i;

    CHECK(splitc_all_reduce_to_all_add_i(MYPROC, SPLITC_HERE) == sum);
    CHECK(splitc_all_reduce_to_all_max_l(MYPROC * 2L, SPLITC_HERE) == PROCS * 2L - 2);
    CHECK(splitc_all_reduce_to_all_min_f((float)MYPROC - 1, SPLITC_HERE) == -1);
    CHECK(splitc_all_scan_add_i(MYPROC, SPLITC_HERE) == MYPROC * (MYPROC + 1) / 2);
    fraction = splitc_all_reduce_to_one_add_d(0.5, SPLITC_HERE);
    CHECK(fraction == (MYPROC ? 0.5 : 0.5 * PROCS));
    if (MYPROC == PROCS - 1)
        strcpy(name, "from the last");
    splitc_all_bcast(name, sizeof name, PROCS - 1, SPLITC_HERE);
    CHECK(!strcmp(name, "from the last"));
    CHECK(splitc_all_bcast_d(MYPROC + 0.25, SPLITC_HERE) == 0.25);
    for (i = 0; i < PROCS; i++)
        gathered[i] = -1;
    gathered[0] = MYPROC + 0.5;
    splitc_all_gather_d(gathered, SPLITC_HERE);
    for (i = 0; i < PROCS; i++)
        CHECK(gathered[i] == (MYPROC == 0 ? i + 0.5 : i == 0 ? MYPROC + 0.5 : -1));
    free(gathered);
}

static void memory(void)
{
    int next = (MYPROC + 1) % PROCS, i;
    static splitc_global shared[1];
    char *pieces[100];
    char *of_libc = malloc(100);
    long *number = (long *)splitc_calloc(1, sizeof *number);
    splitc_global lone;

    CHECK(number && !*number);
    *number = MYPROC + 40;
    shared[0] = splitc_to_global(MYPROC, number);
    splitc_barrier(SPLITC_HERE);
    CHECK(splitc_read_long(splitc_read_global(splitc_to_global(next, shared))) == next + 40);
    splitc_barrier(SPLITC_HERE);
    splitc_free(number);
    for (i = 0; i < 100; i++) {
        pieces[i] = (char *)splitc_memalign(1UL << (i % 13), (size_t)i * 50);
        CHECK(pieces[i] && (unsigned long)pieces[i] % (1UL << (i % 13)) == 0);
        memset(pieces[i], i, (size_t)i * 50);
    }
    for (i = 0; i < 100; i += 2)
        pieces[i] = (char *)splitc_realloc(pieces[i], 10 + (size_t)i * 60);
    for (i = 1; i < 100; i++)
        CHECK(pieces[i][i * 50 - 1] == i);
    for (i = 0; i < 100; i++)
        splitc_free(pieces[i]);
    of_libc[3] = 'x';
    of_libc = (char *)splitc_realloc(of_libc, 3000);
    CHECK(of_libc[3] == 'x');
    splitc_free(of_libc);
    splitc_free(malloc(5));
    CHECK(splitc_malloc((size_t)1 << 60) == NULL);
    lone = splitc_spread_malloc(PROCS * 3L, 8, SPLITC_HERE);
    for (i = 0; i < PROCS * 3; i++)
        splitc_write_long(splitc_spread_add(lone, i, 8), MYPROC * 100 + i);
    splitc_barrier(SPLITC_HERE);
    for (i = 0; i < PROCS * 3; i++)
        CHECK(splitc_read_long(splitc_spread_add(lone, i, 8)) == MYPROC * 100 + i);
    splitc_spread_free(lone, SPLITC_HERE);
}

static int started;

static void at_start(void) { started++; }

__attribute__((constructor)) static void construct(void) { splitc_at_start(at_start); }

static int program(int argc, char **argv)
{
    CHECK(started == 1);
    CHECK(MYPROC >= 0 && MYPROC < PROCS);
    CHECK(argc == 2 && PROCS == atoi(argv[1]));
    accesses();
    stores();
    atomics();
    collectives();
    memory();
    printf("processor %d of %d passed\n", MYPROC, PROCS);
    return 0;
}

SPLITC_MAIN(program)
