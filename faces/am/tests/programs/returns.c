/* Each reason for which a message comes back, by a program that causes exactly it: with operation, arguments and data, once. Also a
 * reply that is rejected. The first argument says which. */
#include <signal.h>
#include <sys/wait.h>

#include "am.h"
#include "check.h"

static eb_t ours, theirs;
static ep_t us, them;
static en_t our_name, their_name;
static int count, status_seen, opcode_seen;
static AMX_returned_t seen;
static uint32_t words_seen[16];
static unsigned char data_seen[70000];
static char segment[4096];
static int handled;

static void returned(int status, op_t opcode, void *token) {
    ep_t at;
    count++;
    status_seen = status;
    opcode_seen = opcode;
    GOOD(AMX_GetReturned(token, &seen));
    memcpy(words_seen, seen.args, sizeof *words_seen * (size_t)seen.numargs);
    memcpy(data_seen, seen.data, seen.nbytes);
    GOOD(AM_GetDestEndpoint(token, &at));
    EQUAL(at == us || at == them, 1);
    /* Neither replied to, nor a place for requests. */
    GIVES(AM_Reply0(token, 1), AM_ERR_RESOURCE, "came back");
    GIVES(AM_Request0(us, 0, 1), AM_ERR_RESOURCE, "handler is running");
}

static void counted(void *token, int a) {
    (void)token, (void)a;
    handled++;
}

static void stored(void *token, void *buf, size_t nbytes, int a) {
    (void)token, (void)buf, (void)nbytes, (void)a;
    handled++;
}

static void answers(void *token, int a) {
    handled++;
    GOOD(AM_Reply2(token, 77, a, 5));
}

static void set_up(void) {
    GOOD(AM_Init());
    GOOD(AM_AllocateBundle(AM_SEQ, &ours));
    GOOD(AM_AllocateBundle(AM_SEQ, &theirs));
    GOOD(AM_AllocateEndpoint(ours, &us, &our_name));
    GOOD(AM_AllocateEndpoint(theirs, &them, &their_name));
    GOOD(AM_SetTag(us, 5));
    GOOD(AM_SetTag(them, 6));
    GOOD(AM_SetHandler(us, 0, returned));
    GOOD(AM_SetHandler(them, 0, returned));
    GOOD(AM_SetHandler(them, 10, counted));
    GOOD(AM_SetHandler(them, 11, stored));
    GOOD(AM_SetHandler(them, 12, answers));
    GOOD(AM_SetSeg(them, segment, sizeof segment));
    GOOD(AM_Map(us, 3, their_name, 6));
    GOOD(AM_SetEventMask(ours, AM_NOTEMPTY));
}

/* Polls both bundles until nothing is outstanding; then a while longer, for what would come twice. */
static void settle(void) {
    int outstanding = 1, looks = 0;
    while (outstanding > 0 || count == 0) {
        GOOD(AM_Poll(theirs));
        int code = AMX_WaitSemaFor(ours, 1);
        if (code != AM_OK) EQUAL(code, AM_ERR_NOT_SENT);
        GOOD(AMX_GetOutstanding(us, &outstanding));
        EQUAL(++looks < 60000, 1);
    }
    for (looks = 0; looks < 200; looks++) {
        GOOD(AM_Poll(theirs));
        GOOD(AM_Poll(ours));
    }
}

static void expect(int status, int opcode, int handler, int numargs, size_t nbytes) {
    EQUAL(count, 1);
    EQUAL(handled, 0);
    EQUAL(status_seen, status);
    EQUAL(opcode_seen, opcode);
    EQUAL(seen.status, status);
    EQUAL(seen.opcode, opcode);
    EQUAL(seen.handler, handler);
    EQUAL(seen.numargs, numargs);
    EQUAL(seen.nbytes, nbytes);
    for (int at = 0; at < numargs; at++) EQUAL(words_seen[at], 100 + at);
    for (size_t at = 0; at < nbytes; at++) EQUAL(data_seen[at], (unsigned char)at);
    count = 0;
}

int main(int argc, char **argv) {
    static unsigned char data[65000];
    const char *what = argc > 1 ? argv[1] : "";
    for (size_t at = 0; at < sizeof data; at++) data[at] = (unsigned char)at;
    if (!strcmp(what, "unreachable")) {
        /* A process that ends. Its name comes by a pipe, as text. */
        int name[2], go[2];
        char text[AMX_NAME_TEXT_BYTES], byte;
        EQUAL(pipe(name) + pipe(go), 0);
        pid_t child = fork();
        if (child == 0) {
            set_up();
            GOOD(AMX_NameToText(their_name, text, sizeof text));
            EQUAL(write(name[1], text, sizeof text), sizeof text);
            EQUAL(read(go[0], &byte, 1), 1);
            /* At once, or in good order. */
            if (argc > 2) raise(SIGKILL);
            GOOD(AM_Terminate());
            return 0;
        }
        EQUAL(read(name[0], text, sizeof text), sizeof text);
        set_up();
        GOOD(AMX_NameFromText(text, &their_name));
        GOOD(AM_Map(us, 4, their_name, 6));
        if (argc > 2) {
            /* While it lives, and does not poll. */
            GOOD(AM_Request2(us, 4, 10, 100, 101));
        }
        EQUAL(write(go[1], "", 1), 1);
        EQUAL(waitpid(child, NULL, 0), child);
        if (argc == 2) GOOD(AM_Request2(us, 4, 10, 100, 101));
        settle();
        expect(EUNREACHABLE, AM_REQUEST_M, 10, 2, 0);
        EQUAL(seen.dest, 4);
        /* Once more: it is gone for good, and each message says so. */
        GOOD(AM_RequestI1(us, 4, 10, data, 9, 100));
        settle();
        expect(EUNREACHABLE, AM_REQUEST_IM, 10, 1, 9);
        GOOD(AM_RequestXferAsync1(us, 4, 8, 11, data, 9, 100));
        settle();
        expect(EUNREACHABLE, AM_REQUEST_XFER_M, 11, 1, 9);
        EQUAL(seen.offset, 8);
    } else {
        set_up();
    }
    if (!strcmp(what, "tag")) {
        GOOD(AM_Map(us, 4, their_name, 7));
        GOOD(AM_Request3(us, 4, 10, 100, 101, 102));
        settle();
        expect(EBADTAG, AM_REQUEST_M, 10, 3, 0);
        EQUAL(seen.dest, 4);
        /* The endpoint takes nothing any more. */
        GOOD(AM_SetTag(them, AM_NONE));
        GOOD(AM_RequestI1(us, 3, 10, data, 1000, 100));
        settle();
        expect(EBADTAG, AM_REQUEST_IM, 10, 1, 1000);
    } else if (!strcmp(what, "handler")) {
        GOOD(AM_Request1(us, 3, 99, 100));
        settle();
        expect(EBADHANDLER, AM_REQUEST_M, 99, 1, 0);
        GOOD(AM_RequestXfer2(us, 3, 8, 99, data, 64, 100, 101));
        settle();
        expect(EBADHANDLER, AM_REQUEST_XFER_M, 99, 2, 64);
        EQUAL(seen.offset, 8);
        /* Removed while the other knew it. */
        GOOD(AM_SetHandler(them, 10, NULL));
        GOOD(AM_Request1(us, 3, 10, 100));
        settle();
        expect(EBADHANDLER, AM_REQUEST_M, 10, 1, 0);
    } else if (!strcmp(what, "offset")) {
        GOOD(AM_RequestXfer1(us, 3, sizeof segment + 1, 11, data, 1, 100));
        settle();
        expect(EBADSEGOFF, AM_REQUEST_XFER_M, 11, 1, 1);
        EQUAL(seen.offset, sizeof segment + 1);
        GOOD(AM_RequestXfer1(us, 3, UINTPTR_MAX, 11, data, 65000, 100));
        settle();
        expect(EBADSEGOFF, AM_REQUEST_XFER_M, 11, 1, 65000);
        /* No segment. */
        GOOD(AM_SetSeg(them, NULL, 0));
        GOOD(AM_RequestXfer1(us, 3, 0, 11, data, 1, 100));
        settle();
        expect(EBADSEGOFF, AM_REQUEST_XFER_M, 11, 1, 1);
    } else if (!strcmp(what, "length")) {
        GOOD(AM_RequestXfer1(us, 3, sizeof segment - 7, 11, data, 8, 100));
        settle();
        expect(EBADLENGTH, AM_REQUEST_XFER_M, 11, 1, 8);
        GOOD(AM_RequestXfer1(us, 3, 0, 11, data, 65000, 100));
        settle();
        expect(EBADLENGTH, AM_REQUEST_XFER_M, 11, 1, 65000);
        /* Nothing was written. */
        for (size_t at = 0; at < sizeof segment; at++) EQUAL(segment[at], 0);
        static char own[65000];
        GOOD(AM_SetSeg(us, own, sizeof own));
        GOOD(AM_SetHandler(us, 20, stored));
        GOOD(AM_GetXfer1(us, 3, 100, 20, 0, 4096, 100));
        settle();
        expect(EBADLENGTH, AM_GET_XFER_M, 20, 1, 0);
        EQUAL(seen.offset, 100);
    } else if (!strcmp(what, "endpoint")) {
        GOOD(AM_Request1(us, 3, 10, 100));
        /* It waits there, and its endpoint goes. */
        GOOD(AM_FreeEndpoint(them));
        settle();
        expect(EBADENDPOINT, AM_REQUEST_M, 10, 1, 0);
        GOOD(AM_Request1(us, 3, 10, 100));
        settle();
        expect(EBADENDPOINT, AM_REQUEST_M, 10, 1, 0);
    } else if (!strcmp(what, "congestion")) {
        /* The endpoint is never polled, and each link has half of its queue. HAMLYN_AM_CONGESTION is short. */
        int sent = 0, looks = 0;
        while (AMX_TryRequestI1(us, 3, 10, data, sizeof data, 100) == AM_OK) sent++;
        EQUAL(sent > 1, 1);
        while (count == 0) {
            int code = AMX_WaitSemaFor(ours, 100);
            if (code != AM_OK) EQUAL(code, AM_ERR_NOT_SENT);
            EQUAL(++looks < 600, 1);
        }
        EQUAL(status_seen, ECONGESTION);
        EQUAL(opcode_seen, AM_REQUEST_IM);
        EQUAL(seen.nbytes, sizeof data);
        EQUAL(memcmp(data_seen, data, sizeof data), 0);
    } else if (!strcmp(what, "rejected")) {
        GOOD(AM_Request1(us, 3, 12, 100));
        for (int looks = 0; count == 0; looks++) {
            GOOD(AM_Poll(theirs));
            GOOD(AM_Poll(ours));
            EQUAL(looks < 100000000, 1);
        }
        EQUAL(handled, 1);
        handled = 0;
        EQUAL(words_seen[1], 5);
        words_seen[1] = 101;
        expect(EREPLYREJECTED, AM_REPLY_M, 77, 2, 0);
        EQUAL(seen.reason, EBADHANDLER);
        EQUAL(seen.dest, -1);
        /* The requester has its credit. */
        int outstanding;
        GOOD(AMX_GetOutstanding(us, &outstanding));
        EQUAL(outstanding, 0);
    } else if (!strcmp(what, "default")) {
        /* The default handler 0 reports, once a second, and goes on; the count is right. */
        GOOD(AM_SetHandler(us, 0, NULL));
        GOOD(AMX_SetReturnPolicy(argc > 2 ? atoi(argv[2]) : AMX_RETURN_REPORT));
        for (int at = 0; at < 40; at++) {
            GOOD(AM_Request1(us, 3, 99, at));
            if (at % 10 == 9) {
                GOOD(AM_Poll(theirs));
                GOOD(AM_Poll(ours));
            }
        }
        int outstanding = 1;
        for (int looks = 0; outstanding; looks++) {
            EQUAL(looks < 100000000, 1);
            GOOD(AM_Poll(theirs));
            GOOD(AM_Poll(ours));
            GOOD(AMX_GetOutstanding(us, &outstanding));
        }
        AMX_statistics_t statistics;
        GOOD(AMX_GetStatistics(&statistics));
        EQUAL(statistics.returned, 40);
    }
    GOOD(AM_Terminate());
    printf("%s passed\n", what);
    return 0;
}
