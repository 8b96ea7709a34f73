/* Start, collective operations and end of a job; the second argument says how it ends. */
#include <signal.h>

#include "am_spmd.h"
#include "check.h"

static int hellos;
static int proc, procs;

static void hello(void *token, int from) {
    int number;
    GOOD(AMX_GetSourceId(token, &number));
    EQUAL(number, from);
    hellos++;
    GOOD(AM_Reply1(token, 2, from));
}
static int answers;
static void answer(void *token, int a) {
    int number;
    (void)token, (void)number;
    EQUAL(a, proc);
    answers++;
}
static void leaving(int status) {
    printf("process %d of %d leaves with %d\n", proc, procs, status);
    fflush(stdout);
}

int main(int argc, char **argv) {
    eb_t eb, other;
    ep_t ep;
    const char *end = argc > 2 ? argv[2] : "";
    EQUAL(AMX_SPMDNumProcs(), 0);
    EQUAL(AMX_SPMDMyProc(), -1);
    EQUAL(AMX_SPMDBarrier(), AM_ERR_NOT_INIT);
    EQUAL(AMX_SPMDExit(0), AM_ERR_NOT_INIT);
    /* Before or without a start. */
    if (argc > 3) GOOD(AM_Init());
    GIVES(AMX_SPMDStartup(&argc, &argv, 0, 0, NULL, NULL, &ep), AM_ERR_BAD_ARG, "null");
    if (!strcmp(end, "other number")) {
        GIVES(AMX_SPMDStartup(&argc, &argv, 5, 0, NULL, &eb, &ep), AM_ERR_BAD_ARG, "asks for 5");
        return 0;
    }
    uint64_t network = 9;
    if (!strcmp(end, "as AMMPI"))
        GOOD(AMX_SPMDStartup(&argc, &argv, 0, &network, &eb, &ep));
    else if (!strcmp(end, "as AMUDP"))
        GOOD(AMX_SPMDStartup(&argc, &argv, 0, 0, NULL, &network, &eb, &ep));
    else
        GOOD(AMX_SPMDStartup(&argc, &argv, !strcmp(end, "alone") ? atoi(argv[1]) : 0, 128, NULL, &eb, &ep));
    if (!strncmp(end, "as", 2)) EQUAL(network, 0);
    EQUAL(AMX_SPMDIsWorker(argv), 1);
    GIVES(AMX_SPMDStartup(&argc, &argv, 0, 0, NULL, &other, &ep), AM_ERR_IN_USE, "before");
    procs = AMX_SPMDNumProcs(), proc = AMX_SPMDMyProc();
    EQUAL(procs, atoi(argv[1]));
    tag_t tags[64];
    for (int at = 0; at < procs; at++) {
        GOOD(AM_GetTranslationTag(ep, at, &tags[at]));
        for (int before = 0; before < at; before++) EQUAL(tags[at] != tags[before], 1);
    }
    GIVES(AM_Request0(ep, procs, 1), AM_ERR_BAD_ARG, "not mapped");
    GOOD(AM_SetHandler(ep, 1, hello));
    GOOD(AM_SetHandler(ep, 2, answer));
    GOOD(AMX_SPMDBarrier());
    for (int to = 0; to < procs; to++) GOOD(AM_Request1(ep, to, 1, proc));
    UNTIL(eb, answers == procs && hellos == procs);
    /* Collective operations, many, of many lengths. */
    static char own[40000], all[4 * 40000];
    for (int round = 0; round < 60; round++) {
        size_t length = round % 3 == 0 ? (size_t)round : (size_t)(round * 661 % 40000);
        for (size_t at = 0; at < length; at++) own[at] = (char)(at + (size_t)proc * 3 + (size_t)round);
        GOOD(AMX_SPMDAllGather(own, all, length));
        for (int from = 0; from < procs; from++)
            for (size_t at = 0; at < length; at++)
                EQUAL(all[(size_t)from * length + at], (char)(at + (size_t)from * 3 + (size_t)round));
        int root = round % procs;
        memset(all, 0, sizeof all);
        if (root == proc) memset(all, round + 1, length);
        GOOD(AMX_SPMDBroadcast(all, length, root));
        for (size_t at = 0; at < length; at++) EQUAL(all[at], (char)(round + 1));
        EQUAL(all[length], 0);
        if (round % 5 == 0) GOOD(AMX_SPMDBarrier());
    }
    GIVES(AMX_SPMDBroadcast(all, 1, procs), AM_ERR_BAD_ARG, "no process");
    GIVES(AMX_SPMDAllGather(own, NULL, 1), AM_ERR_BAD_ARG, "null");
    GIVES(AMX_SPMDAllGather(own, all, (size_t)1 << 40), AM_ERR_BAD_ARG, "64 MiB");
    if (!strcmp(end, "differ") && procs > 1) {
        if (proc == 1)
            GIVES(AMX_SPMDAllGather(own, all, 1), AM_ERR_RESOURCE, "different operations");
        else
            GIVES(AMX_SPMDBarrier(), AM_ERR_RESOURCE, "different operations");
        /* The next one is right again. */
        GOOD(AMX_SPMDBarrier());
    }
    if (!strcmp(end, "killed") && proc == procs - 1) raise(SIGKILL);
    if (!strcmp(end, "leaves") && proc == procs - 1) _exit(0);
    if (!strcmp(end, "first leaves") && proc == 0) _exit(0);
    if (!strcmp(end, "leaves") || !strcmp(end, "first leaves")) {
        GIVES(AMX_SPMDBarrier(), AM_ERR_RESOURCE, proc ? "process 0" : "is gone");
        printf("process %d of %d hears of it\n", proc, procs);
        fflush(stdout);
        return 9;
    }
    GOOD(AMX_SPMDSetExitCallback(leaving));
    if (!strcmp(end, "fails") && proc == procs - 1) return AMX_SPMDExit(7);
    printf("process %d of %d passed\n", proc, procs);
    fflush(stdout);
    return AMX_SPMDExit(0);
}
