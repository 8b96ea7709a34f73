/* Every form with 0 to 16 arguments and data of many lengths, from each process of a job to the next one: request, reply, and what is
 * got. Each handler checks its arguments and its data. Prints a line when all was right. */
#include "am_spmd.h"
#include "check.h"

enum { SHORT = 1, SHORT_BACK = 20, MEDIUM = 40, MEDIUM_BACK = 60, BULK = 80, BULK_BACK = 100, GOT = 120 };
enum { LENGTH_MAX = 65000, PLACE = 128, SEGMENT = 4 * (LENGTH_MAX + 2 * PLACE) };

static ep_t ep;
static eb_t eb;
static unsigned char *segment, *data;
static size_t length;
/* The longest medium message and reply: fewer between hosts. */
static size_t most = LENGTH_MAX;
static int answers;

static unsigned char byte_of(size_t at, int seed) { return (unsigned char)(at * 7 + (size_t)seed * 31 + 1); }

static void fill(unsigned char *into, size_t count, int seed) {
    for (size_t at = 0; at < count; at++) into[at] = byte_of(at, seed);
}

static void check_bytes(const char *where, const void *found, size_t nbytes, int seed) {
    const unsigned char *bytes = (const unsigned char *)found;
    for (size_t at = 0; at < nbytes; at++)
        if (bytes[at] != byte_of(at, seed)) {
            fprintf(stderr, "%s: byte %zu of %zu is %d, not %d\n", where, at, nbytes, bytes[at], byte_of(at, seed));
            exit(1);
        }
}
#define check(found, nbytes, seed) check_bytes(__func__, found, nbytes, seed)

static size_t shorter(size_t nbytes) { return nbytes < most ? nbytes : most; }

static void check_arguments(const int *found, int count) {
    for (int at = 0; at < count; at++) EQUAL(found[at], at % 2 ? 0x7fffff00 + at : -1 - at);
}

/* The segment's first half takes requests, its second one replies, and what is got comes from the first. */
#define BACK_PLACE (SEGMENT / 2 + PLACE)

#define P0
#define P1 , int b0
#define P2 P1, int b1
#define P3 P2, int b2
#define P4 P3, int b3
#define P5 P4, int b4
#define P6 P5, int b5
#define P7 P6, int b6
#define P8 P7, int b7
#define P9 P8, int b8
#define P10 P9, int b9
#define P11 P10, int b10
#define P12 P11, int b11
#define P13 P12, int b12
#define P14 P13, int b13
#define P15 P14, int b14
#define P16 P15, int b15
#define V0
#define V1 , b0
#define V2 V1, b1
#define V3 V2, b2
#define V4 V3, b3
#define V5 V4, b4
#define V6 V5, b5
#define V7 V6, b6
#define V8 V7, b7
#define V9 V8, b8
#define V10 V9, b9
#define V11 V10, b10
#define V12 V11, b11
#define V13 V12, b12
#define V14 V13, b13
#define V15 V14, b14
#define V16 V15, b15
#define B0
#define B1 int b0 = -1;
#define B2 B1 int b1 = 0x7fffff01;
#define B3 B2 int b2 = -3;
#define B4 B3 int b3 = 0x7fffff03;
#define B5 B4 int b4 = -5;
#define B6 B5 int b5 = 0x7fffff05;
#define B7 B6 int b6 = -7;
#define B8 B7 int b7 = 0x7fffff07;
#define B9 B8 int b8 = -9;
#define B10 B9 int b9 = 0x7fffff09;
#define B11 B10 int b10 = -11;
#define B12 B11 int b11 = 0x7fffff0b;
#define B13 B12 int b12 = -13;
#define B14 B13 int b13 = 0x7fffff0d;
#define B15 B14 int b14 = -15;
#define B16 B15 int b15 = 0x7fffff0f;

#define HANDLERS(M)                                                                                                  \
    static void short_##M(void *token P##M) {                                                                        \
        int found[] = {0 V##M};                                                                                      \
        check_arguments(found + 1, M);                                                                               \
        GOOD(AM_Reply##M(token, SHORT_BACK + M V##M));                                                               \
    }                                                                                                                \
    static void short_back_##M(void *token P##M) {                                                                   \
        int found[] = {0 V##M};                                                                                      \
        (void)token;                                                                                                 \
        check_arguments(found + 1, M);                                                                               \
        answers++;                                                                                                   \
    }                                                                                                                \
    static void medium_##M(void *token, void *buf, size_t nbytes P##M) {                                             \
        int found[] = {0 V##M};                                                                                      \
        check_arguments(found + 1, M);                                                                               \
        check(buf, nbytes, M);                                                                                       \
        EQUAL((uintptr_t)buf % 8, 0);                                                                                \
        /* It is the handler's own. */                                                                               \
        fill((unsigned char *)buf, nbytes, M + 1);                                                                   \
        GOOD(AM_ReplyI##M(token, MEDIUM_BACK + M, buf, nbytes V##M));                                                \
    }                                                                                                                \
    static void medium_back_##M(void *token, void *buf, int nbytes P##M) {                                           \
        int found[] = {0 V##M};                                                                                      \
        (void)token;                                                                                                 \
        check_arguments(found + 1, M);                                                                               \
        EQUAL(nbytes, shorter(length));                                                                              \
        check(buf, (size_t)nbytes, M + 1);                                                                           \
        answers++;                                                                                                   \
    }                                                                                                                \
    static void bulk_##M(void *token, void *buf, size_t nbytes P##M) {                                               \
        int found[] = {0 V##M};                                                                                      \
        check_arguments(found + 1, M);                                                                               \
        if (nbytes) EQUAL((unsigned char *)buf - segment, PLACE);                                                    \
        check(buf, nbytes, M + 2);                                                                                   \
        EQUAL(segment[PLACE + nbytes], 0xee);                                                                        \
        EQUAL(segment[PLACE - 1], 0xee);                                                                             \
        GOOD(AM_ReplyXfer##M(token, BACK_PLACE, BULK_BACK + M, buf, shorter(nbytes) V##M));                          \
    }                                                                                                                \
    static void bulk_back_##M(void *token, void *buf, size_t nbytes P##M) {                                          \
        int found[] = {0 V##M};                                                                                      \
        (void)token;                                                                                                 \
        check_arguments(found + 1, M);                                                                               \
        EQUAL(nbytes, shorter(length));                                                                              \
        EQUAL((unsigned char *)buf - segment, BACK_PLACE);                                                           \
        check(buf, nbytes, M + 2);                                                                                   \
        answers++;                                                                                                   \
    }                                                                                                                \
    static void got_##M(void *token, void *buf, size_t nbytes P##M) {                                                \
        int found[] = {0 V##M};                                                                                      \
        (void)token;                                                                                                 \
        check_arguments(found + 1, M);                                                                               \
        EQUAL(nbytes, length);                                                                                       \
        EQUAL((unsigned char *)buf - segment, BACK_PLACE);                                                           \
        check(buf, nbytes, M + 2);                                                                                   \
        answers++;                                                                                                   \
    }                                                                                                                \
    static void set_##M(void) {                                                                                      \
        GOOD(AM_SetHandler(ep, SHORT + M, short_##M));                                                               \
        GOOD(AM_SetHandler(ep, SHORT_BACK + M, short_back_##M));                                                     \
        GOOD(AM_SetHandler(ep, MEDIUM + M, medium_##M));                                                             \
        GOOD(AM_SetHandler(ep, MEDIUM_BACK + M, medium_back_##M));                                                   \
        GOOD(AM_SetHandler(ep, BULK + M, bulk_##M));                                                                 \
        GOOD(AM_SetHandler(ep, BULK_BACK + M, bulk_back_##M));                                                       \
        GOOD(AM_SetHandler(ep, GOT + M, got_##M));                                                                   \
    }                                                                                                                \
    static void clear_##M(unsigned char *place) {                                                                    \
        memset(place - PLACE, 0xee, length + 2 * PLACE);                                                             \
    }                                                                                                                \
    static void run_##M(int to, int is_async) {                                                                      \
        B##M int (*request)(ep_t, int, handler_t P##M) = is_async ? AMX_TryRequest##M : AM_Request##M;               \
        answers = 0;                                                                                                 \
        GOOD(request(ep, to, SHORT + M V##M));                                                                       \
        UNTIL(eb, answers == 1);                                                                                     \
        fill(data, length, M);                                                                                       \
        GOOD((is_async ? AMX_TryRequestI##M : AM_RequestI##M)(ep, to, MEDIUM + M, data, shorter(length) V##M));      \
        /* The source is free. */                                                                                    \
        memset(data, 0, length);                                                                                     \
        UNTIL(eb, answers == 2);                                                                                     \
        clear_##M(segment + PLACE);                                                                                  \
        clear_##M(segment + BACK_PLACE);                                                                             \
        GOOD(AMX_SPMDBarrier());                                                                                     \
        fill(data, length, M + 2);                                                                                   \
        GOOD((is_async ? AM_RequestXferAsync##M : AM_RequestXfer##M)(ep, to, PLACE, BULK + M, data, length V##M));   \
        memset(data, 0, length);                                                                                     \
        UNTIL(eb, answers == 3);                                                                                     \
        clear_##M(segment + BACK_PLACE);                                                                             \
        GOOD((is_async ? AM_GetXferAsync##M : AM_GetXfer##M)(ep, to, PLACE, GOT + M, BACK_PLACE, length V##M));      \
        UNTIL(eb, answers == 4);                                                                                     \
        EQUAL(segment[BACK_PLACE + length], 0xee);                                                                   \
        EQUAL(segment[BACK_PLACE - 1], 0xee);                                                                        \
        /* Nobody clears what another still gets. */                                                                 \
        GOOD(AMX_SPMDBarrier());                                                                                     \
    }

HANDLERS(0)
HANDLERS(1)
HANDLERS(2)
HANDLERS(3)
HANDLERS(4)
HANDLERS(5)
HANDLERS(6)
HANDLERS(7)
HANDLERS(8)
HANDLERS(9)
HANDLERS(10)
HANDLERS(11)
HANDLERS(12)
HANDLERS(13)
HANDLERS(14)
HANDLERS(15)
HANDLERS(16)

#define EACH(F) {F##0, F##1, F##2, F##3, F##4, F##5, F##6, F##7, F##8, F##9, F##10, F##11, F##12, F##13, F##14, F##15, F##16}

int main(int argc, char **argv) {
    static const size_t lengths[] = {0, 1, 7, 8, 63, 64, 4096, LENGTH_MAX};
    void (*const set[])(void) = EACH(set_);
    void (*const run[])(int, int) = EACH(run_);
    GOOD(AMX_SPMDStartup(&argc, &argv, 0, 0, NULL, &eb, &ep));
    int procs = AMX_SPMDNumProcs(), proc = AMX_SPMDMyProc();
    EQUAL(procs, atoi(argv[1]));
    segment = (unsigned char *)malloc(SEGMENT);
    data = (unsigned char *)malloc(LENGTH_MAX + 1);
    memset(segment, 0xee, SEGMENT);
    GOOD(AM_SetSeg(ep, segment, SEGMENT));
    for (int count = 0; count <= 16; count++) set[count]();
    for (int to = 0; to < procs; to++) {
        int nbytes = 0;
        GOOD(AMX_MaxMediumTo(ep, to, &nbytes));
        if ((size_t)nbytes < most) most = (size_t)nbytes;
    }
    /* It grows, as longer packets are tried. */
    size_t all[64];
    GOOD(AMX_SPMDAllGather(&most, all, sizeof most));
    for (int at = 0; at < procs; at++)
        if (all[at] < most) most = all[at];
    if (argc < 3) EQUAL(most, LENGTH_MAX);
    EQUAL(most > 500, 1);
    GOOD(AMX_SPMDBarrier());
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++)
        for (int count = 0; count <= 16; count++) {
            length = lengths[at];
            run[count]((proc + 1) % procs, (int)at % 2);
        }
    AMX_statistics_t statistics;
    GOOD(AMX_GetStatistics(&statistics));
    EQUAL(statistics.returned + statistics.replies_rejected + statistics.violations, 0);
    printf("process %d of %d passed\n", proc, procs);
    fflush(stdout);
    return AMX_SPMDExit(0);
}
