/* Nodes that end, take nothing, do not come, or close an end point; two of them. */
#include "job.h"

#include <unistd.h>

enum { COUNT = 0, GO = 1, BYTES = 4000 };

static unsigned counted, next, is_to_go;

/* Numbers come in their order. */
static void on_count(udm_t *u, void *argument) {
    udm_message message;
    (void)argument;
    GOOD(udm_extract(u, &message));
    EQUAL(udm_word(&message, 0), next);
    next++;
    counted++;
}

static void on_go(udm_t *u, void *argument) {
    (void)argument;
    GOOD(udm_dispose(u));
    is_to_go = 1;
}

/* The next event of that kind; others of before are passed over. Runs handlers. */
static udm_event event_of(int kind) {
    udm_event event;
    int looks = 0;
    for (;;) {
        GOOD(udm_next_event(udm, &event));
        if (event.kind == kind) return event;
        TRUE(event.kind != UDM_EVENT_MISSED && event.kind != UDM_EVENT_OTHER);
        if (event.kind == UDM_EVENT_NONE) {
            GOOD(udm_wait(udm, 10, NULL));
            TRUE(++looks < 6000);
        }
    }
}

static int said(void) {
    printf("process %u of %u passed\n", me, nodes);
    fflush(stdout);
    return 0;
}

/* Node 1 ends; node 0 hears of it. */
static int lost(void) {
    udm_event event;
    size_t words;
    if (me == 1) {
        GOOD(udm_inject1(udm, 0, COUNT, 0));
        GOOD(udm_inject0(udm, 0, GO));
        GOOD(udm_flush(udm, LONG));
        GOOD(udm_close(udm));
        return said();
    }
    GOOD(udm_lost(udm, 0));
    event = event_of(UDM_EVENT_LOST);
    EQUAL(event.node, 1);
    TRUE(strlen(event.reason) > 0);
    GIVES(udm_lost(udm, 1), UDM_LOST, "node 1 is gone");
    GIVES(udm_inject0(udm, 1, COUNT), UDM_LOST, "node 1 is gone");
    GIVES(udm_space_available(udm, 1, &words), UDM_LOST, "node 1 is gone");
    GIVES(udm_injectc_bytes(udm, 1, COUNT, &event, 100), UDM_LOST, "node 1 is gone");
    /* Its messages of before are there. */
    UNTIL(is_to_go);
    EQUAL(counted, 1);
    GIVES(udm_barrier(udm, LONG), UDM_LOST, "node 1 is gone");
    return said();
}

/* Node 1 does not come to a barrier in time. */
static int barrier(void) {
    if (me == 0) {
        GIVES(udm_barrier(udm, 50), UDM_TIMED_OUT, "node 1");
        GOOD(udm_inject0(udm, 1, GO));
        GOOD(udm_flush(udm, LONG));
    } else {
        UNTIL(is_to_go);
    }
    return said();
}

/* Node 1 makes no call until a file is there; node 0 fills the memory that it lends. */
static int full(const char *file) {
    unsigned char bytes[BYTES] = {0};
    unsigned sent = 0, waits = 0;
    uint64_t waiting = 0;
    size_t words;
    int code, mode;
    udm_event event;
    udm_message message;
    if (me == 1) {
        while (access(file, F_OK)) usleep(1000);
        GOOD(udm_mode(udm, 0, &mode, NULL));
        EQUAL(mode, UDM_DIRECT);
        UNTIL(is_to_go);
        TRUE(counted > 1000);
        event = event_of(UDM_EVENT_BUFFERING_INCOMING);
        EQUAL(event.node, 0);
        TRUE(event.waiting_bytes >= event.limit_bytes / 2 && event.limit_bytes > 0);
        event = event_of(UDM_EVENT_DRAINED_INCOMING);
        EQUAL(event.node, 0);
        GOOD(udm_barrier(udm, LONG));
        return said();
    }
    GOOD(udm_mode(udm, 1, &mode, &waiting));
    EQUAL(mode, UDM_DIRECT);
    EQUAL(waiting, 0);
    for (;;) {
        memcpy(bytes, &sent, sizeof sent);
        code = udm_injectc_bytes(udm, 1, COUNT, bytes, sizeof bytes);
        /* One that waits has 20 ms, by the options. */
        if (code == UDM_QUOTA) code = udm_inject_bytes(udm, 1, COUNT, bytes, sizeof bytes);
        if (code == UDM_QUOTA) break;
        if (code == UDM_WOULD_BLOCK) {
            /* The patience before the memory is used, or the end of it. */
            waits++;
            TRUE(strstr(udm_error_text(), "no room") != NULL);
            continue;
        }
        GOOD(code);
        sent++;
    }
    TRUE(waits > 0);
    TRUE(strstr(udm_error_text(), "takes nothing") != NULL);
    TRUE(sent * (uint64_t)BYTES > (8u << 20));
    GOOD(udm_mode(udm, 1, &mode, &waiting));
    EQUAL(mode, UDM_BUFFERED);
    TRUE(waiting > (8u << 20));
    event = event_of(UDM_EVENT_BUFFERING);
    EQUAL(event.node, 1);
    TRUE(event.waiting_bytes >= event.limit_bytes / 2 && event.limit_bytes > 0);
    /* Short ones are queued. */
    do {
        GOOD(udm_space_available(udm, 1, &words));
        code = udm_injectc1(udm, 1, COUNT, sent);
        EQUAL(code, words ? UDM_OK : UDM_QUOTA);
        sent += code == UDM_OK;
        TRUE(!words || words == UDM_WORDS_MAX);
    } while (words);
    GOOD(udm_space_available(udm, 0, &words));
    EQUAL(words, UDM_WORDS_MAX);
    /* A section may be in the same state. Messages to others are not concerned. */
    GOOD(udm_beginatom(udm, UDM_INTERRUPT_DISABLE));
    EQUAL(udm_injectc_bytes(udm, 1, COUNT, bytes, sizeof bytes), UDM_QUOTA);
    GOOD(udm_inject1(udm, 0, COUNT, 0));
    GOOD(udm_await(udm, LONG));
    GOOD(udm_extract(udm, &message));
    GOOD(udm_endatom(udm, UDM_INTERRUPT_DISABLE));
    fclose(fopen(file, "w"));
    while ((code = udm_injectc0(udm, 1, GO)) == UDM_QUOTA || code == UDM_WOULD_BLOCK) GOOD(udm_poll(udm, 1, NULL));
    GOOD(code);
    event = event_of(UDM_EVENT_DRAINED);
    EQUAL(event.node, 1);
    GOOD(udm_mode(udm, 1, &mode, &waiting));
    EQUAL(mode, UDM_DIRECT);
    GOOD(udm_barrier(udm, LONG));
    unlink(file);
    return said();
}

/* Node 1 closes its end point, and its interface is there by another one. */
static int refused(int is_far) {
    udm_options options;
    udm_t *other;
    udm_event event;
    int code;
    memset(&options, 0, sizeof options);
    options.name = "other";
    GOOD(udm_open(&other, &options));
    GOOD(udm_barrier(other, LONG));
    if (me == 1) {
        GOOD(udm_close(udm));
        udm = other;
        GOOD(udm_barrier(udm, LONG));
        GOOD(udm_barrier(udm, LONG));
        GOOD(udm_flush(udm, LONG));
        return said();
    }
    GOOD(udm_barrier(other, LONG));
    GOOD(udm_inject0(udm, 1, COUNT));
    event = event_of(UDM_EVENT_REFUSED);
    EQUAL(event.node, 1);
    TRUE(strlen(event.reason) > 0);
    code = udm_inject0(udm, 1, COUNT);
    /* Between hosts later ones would wait for that one for ever. */
    EQUAL(code, is_far ? UDM_REFUSED : UDM_OK);
    if (is_far) TRUE(strstr(udm_error_text(), "refused a message") != NULL);
    GOOD(udm_barrier(other, LONG));
    GOOD(udm_close(other));
    return said();
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    udm_options options;
    memset(&options, 0, sizeof options);
    if (!strcmp(what, "full")) options.wait_ms = 20;
    if (!strcmp(what, "unreachable")) {
        /* One of two nodes, and the other one is never there. */
        const char *addresses[2];
        char name[2][64];
        snprintf(name[0], sizeof name[0], "udm-alone-%d", (int)getpid());
        snprintf(name[1], sizeof name[1], "udm-never-%d", (int)getpid());
        addresses[0] = name[0];
        addresses[1] = name[1];
        options.group.name = "two";
        options.group.nodes = 2;
        options.group.addresses = addresses;
        options.open_ms = 50;
        GIVES(udm_open(&udm, &options), UDM_UNREACHABLE, "node 1");
        TRUE(udm == NULL);
        printf("passed\n");
        return 0;
    }
    GOOD(udm_open(&udm, &options));
    GOOD(udm_self(udm, &me));
    GOOD(udm_nodes(udm, &nodes));
    EQUAL(nodes, 2);
    GOOD(udm_on(udm, COUNT, on_count, NULL));
    GOOD(udm_on(udm, GO, on_go, NULL));
    GOOD(udm_barrier(udm, LONG));
    if (!strcmp(what, "lost")) return lost();
    if (!strcmp(what, "barrier")) return barrier();
    if (!strcmp(what, "full")) return full(argv[2]);
    if (!strcmp(what, "refused")) return refused(argc > 2);
    return 2;
}
