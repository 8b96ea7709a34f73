/* Misuse is a code, and never the end of the process. */
#include "job.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static uint32_t words[16];
static int ran;

static void nothing(udm_t *u, void *argument) {
    (void)argument;
    GOOD(udm_dispose(u));
    ran++;
}

static volatile int is_in_handler, is_to_go_on;
static pthread_t program;

static void holds(udm_t *u, void *argument) {
    (void)argument;
    GOOD(udm_dispose(u));
    /* The end of a call of the program runs handlers, too. */
    if (pthread_equal(pthread_self(), program)) {
        GOOD(udm_inject0(u, 0, 1));
        return;
    }
    is_in_handler = 1;
    while (!is_to_go_on) {}
}

static void all_give(udm_t *u, int code) {
    udm_message message;
    udm_statistics statistics;
    udm_event event;
    uint32_t number;
    uint64_t waiting;
    size_t length;
    void *area;
    unsigned bits;
    int is;
    EQUAL(udm_self(u, &number), code);
    EQUAL(udm_nodes(u, &number), code);
    EQUAL(udm_on(u, 1, nothing, NULL), code);
    EQUAL(udm_inject(u, 0, 1, 1, words), code);
    EQUAL(udm_injectc(u, 0, 1, 1, words), code);
    EQUAL(udm_inject_bytes(u, 0, 1, words, 5), code);
    EQUAL(udm_injectc_bytes(u, 0, 1, words, 5), code);
    EQUAL(udm_bytes_max(u, 0, &length), code);
    EQUAL(udm_inject_bulk(u, 0, 1, 1, words, words, 5, 0), code);
    EQUAL(udm_bulk_area(u, &area, &length), code);
    EQUAL(udm_space_available(u, 0, &length), code);
    EQUAL(udm_available(u, &is), code);
    EQUAL(udm_peek(u, &message), code);
    EQUAL(udm_extract(u, &message), code);
    EQUAL(udm_dispose(u), code);
    EQUAL(udm_beginatom(u, 1), code);
    EQUAL(udm_endatom(u, 1), code);
    EQUAL(udm_uac(u, &bits), code);
    EQUAL(udm_spawn(u, nothing, NULL), code);
    EQUAL(udm_poll(u, 1, &length), code);
    EQUAL(udm_wait(u, 0, &length), code);
    EQUAL(udm_await(u, 0), code);
    EQUAL(udm_barrier(u, 0), code);
    EQUAL(udm_flush(u, 0), code);
    EQUAL(udm_lost(u, 0), code);
    EQUAL(udm_mode(u, 0, &is, &waiting), code);
    EQUAL(udm_get_statistics(u, &statistics), code);
    EQUAL(udm_next_event(u, &event), code);
    EQUAL(udm_close(u), code);
}

static void *elsewhere(void *argument) {
    udm_t *other;
    (void)argument;
    all_give(udm, UDM_WRONG_THREAD);
    GIVES(udm_open(&other, NULL), UDM_WRONG_THREAD, "another thread");
    TRUE(other == NULL);
    return NULL;
}

static void *opens(void *argument) {
    (void)argument;
    open_node(UDM_SAFEPOINT);
    GOOD(udm_close(udm));
    return NULL;
}

static void arguments(void) {
    udm_options options;
    udm_t *other;
    const char *addresses[2] = {"udm-misuse-a", NULL};
    char huge[5000] = {0};
    uint32_t node;
    udm_event event;
    EQUAL(udm_open(NULL, NULL), UDM_BAD_ARGUMENT);
    memset(&options, 0, sizeof options);
    options.interrupts = 4;
    GIVES(udm_open(&other, &options), UDM_BAD_ARGUMENT, "UDM_SAFEPOINT");
    options.interrupts = 0;
    options.group.name = "g";
    GIVES(udm_open(&other, &options), UDM_BAD_ARGUMENT, "no addresses");
    options.group.addresses = addresses;
    GIVES(udm_open(&other, &options), UDM_BAD_ARGUMENT, "no address of the group");
    options.group.nodes = 2;
    GIVES(udm_open(&other, &options), UDM_BAD_ARGUMENT, "null");
    options.group.nodes = 1u << 20;
    GIVES(udm_open(&other, &options), UDM_BAD_ARGUMENT, "65,536");
    options.group.nodes = 1;
    options.group.name = "\xff\xfe";
    GIVES(udm_open(&other, &options), UDM_BAD_ARGUMENT, "UTF-8");
    options.group.name = NULL;
    GIVES(udm_open(&other, &options), UDM_BAD_ARGUMENT, "null");
    options.group.name = "g";
    addresses[0] = "no name/of an/interface";
    EQUAL(udm_open(&other, &options), UDM_RESOURCE);
    memset(&options, 0, sizeof options);
    options.queue_bytes = 1;
    EQUAL(udm_open(&other, &options), UDM_RESOURCE);
    TRUE(other == NULL);
    /* The same name again. */
    GIVES(udm_open(&other, NULL), UDM_IN_USE, "another name");
    memset(&options, 0, sizeof options);
    options.name = "second";
    GOOD(udm_open(&other, &options));
    TRUE(other != udm);
    GOOD(udm_inject0(other, 0, 1));
    GOOD(udm_close(other));
    all_give(other, UDM_NOT_OPEN);
    all_give(NULL, UDM_NOT_OPEN);
    all_give((udm_t *)words, UDM_NOT_OPEN);
    all_give((udm_t *)(uintptr_t)-1, UDM_NOT_OPEN);
    /* Handlers, nodes, lengths, null. */
    GIVES(udm_on(udm, UDM_HANDLERS_MAX, nothing, NULL), UDM_BAD_HANDLER, "4093");
    GIVES(udm_on(udm, 65535, nothing, NULL), UDM_BAD_HANDLER, "4093");
    GIVES(udm_on(udm, 1, NULL, NULL), UDM_BAD_ARGUMENT, "null");
    GOOD(udm_on(udm, UDM_HANDLERS_MAX - 1, nothing, NULL));
    GIVES(udm_inject0(udm, 0, UDM_HANDLERS_MAX), UDM_BAD_HANDLER, "4093");
    GIVES(udm_inject_bytes(udm, 0, UDM_HANDLERS_MAX, words, 1), UDM_BAD_HANDLER, "4093");
    GIVES(udm_inject0(udm, 1, 0), UDM_BAD_NODE, "no node 1");
    GIVES(udm_injectc0(udm, 0xffffffff, 0), UDM_BAD_NODE, "no node");
    GIVES(udm_lost(udm, 1), UDM_BAD_NODE, "no node 1");
    GIVES(udm_mode(udm, 1, &ran, NULL), UDM_BAD_NODE, "no node 1");
    GIVES(udm_bytes_max(udm, 1, NULL), UDM_BAD_NODE, "no node 1");
    GIVES(udm_space_available(udm, 1, NULL), UDM_BAD_NODE, "no node 1");
    GIVES(udm_space_available(udm, 0, NULL), UDM_BAD_ARGUMENT, "null");
    GIVES(udm_inject(udm, 0, 0, 15, words), UDM_TOO_LONG, "14 words");
    GIVES(udm_inject(udm, 0, 0, (size_t)-1, words), UDM_TOO_LONG, "14 words");
    GIVES(udm_inject(udm, 0, 0, 1, NULL), UDM_BAD_ARGUMENT, "null");
    GIVES(udm_inject_bytes(udm, 0, 0, huge, 4097), UDM_TOO_LONG, "4096 at most");
    GIVES(udm_inject_bytes(udm, 0, 0, huge, (size_t)-1), UDM_BAD_ARGUMENT, "longer than memory");
    GIVES(udm_injectc_bytes(udm, 0, 0, NULL, 1), UDM_BAD_ARGUMENT, "null");
    GIVES(udm_inject_bulk(udm, 0, UDM_HANDLERS_MAX, 0, NULL, NULL, 0, 0), UDM_BAD_HANDLER, "4093");
    GIVES(udm_inject_bulk(udm, 1, 0, 0, NULL, NULL, 0, 0), UDM_BAD_NODE, "no node 1");
    GIVES(udm_inject_bulk(udm, 0, 0, 15, words, words, 1, 0), UDM_TOO_LONG, "14 words");
    GIVES(udm_inject_bulk(udm, 0, 0, 1, NULL, words, 1, 0), UDM_BAD_ARGUMENT, "null");
    GIVES(udm_inject_bulk(udm, 0, 0, 0, NULL, NULL, 1, 0), UDM_BAD_ARGUMENT, "null");
    GIVES(udm_inject_bulk(udm, 0, 0, 0, NULL, words, 1, AREA_BYTES), UDM_OUTSIDE, "do not lie in the area");
    GIVES(udm_inject_bulk(udm, 0, 0, 0, NULL, words, 2, (size_t)-1), UDM_OUTSIDE, "do not lie in the area");
    GIVES(udm_bulk_area(udm, NULL, NULL), UDM_BAD_ARGUMENT, "null");
    GIVES(udm_self(udm, NULL), UDM_BAD_ARGUMENT, "null");
    GIVES(udm_nodes(udm, NULL), UDM_BAD_ARGUMENT, "null");
    GIVES(udm_available(udm, NULL), UDM_BAD_ARGUMENT, "null");
    GIVES(udm_uac(udm, NULL), UDM_BAD_ARGUMENT, "null");
    GIVES(udm_spawn(udm, NULL, NULL), UDM_BAD_ARGUMENT, "null");
    GIVES(udm_mode(udm, 0, NULL, NULL), UDM_BAD_ARGUMENT, "null");
    GIVES(udm_get_statistics(udm, NULL), UDM_BAD_ARGUMENT, "null");
    GIVES(udm_next_event(udm, NULL), UDM_BAD_ARGUMENT, "null");
    GOOD(udm_next_event(udm, &event));
    EQUAL(event.kind, UDM_EVENT_NONE);
    /* A place for a message that is null takes nothing away. */
    GOOD(udm_beginatom(udm, UDM_INTERRUPT_DISABLE));
    GOOD(udm_inject1(udm, 0, UDM_HANDLERS_MAX - 1, 1));
    GOOD(udm_await(udm, LONG));
    GIVES(udm_peek(udm, NULL), UDM_BAD_ARGUMENT, "null");
    GOOD(udm_endatom(udm, UDM_INTERRUPT_DISABLE));
    UNTIL(ran == 1);
    GOOD(udm_self(udm, &node));
    EQUAL(node, 0);
    for (node = 0; node < 64; node++) TRUE(strlen(udm_strerror((int)node)) > 0);
    TRUE(strcmp(udm_strerror(UDM_QUOTA), udm_strerror(999)) != 0);
}

static void calls_all(udm_t *u, void *argument) {
    size_t length;
    udm_message message;
    udm_event event;
    udm_options options;
    udm_t *other = (udm_t *)argument;
    GIVES(udm_on(u, 1, nothing, NULL), UDM_IN_HANDLER, "returned");
    GIVES(udm_poll(u, 1, &length), UDM_IN_HANDLER, "returned");
    GIVES(udm_wait(u, 0, &length), UDM_IN_HANDLER, "returned");
    GIVES(udm_await(u, 0), UDM_IN_HANDLER, "returned");
    GIVES(udm_barrier(u, 0), UDM_IN_HANDLER, "returned");
    GIVES(udm_flush(u, 0), UDM_IN_HANDLER, "returned");
    GIVES(udm_lost(u, 0), UDM_IN_HANDLER, "returned");
    GIVES(udm_close(u), UDM_IN_HANDLER, "returned");
    GIVES(udm_inject0(u, 9, 1), UDM_BAD_NODE, "no node");
    GIVES(udm_inject(u, 0, 1, 15, words), UDM_TOO_LONG, "14 words");
    GIVES(udm_inject0(u, 0, UDM_HANDLERS_MAX), UDM_BAD_HANDLER, "4093");
    GIVES(udm_beginatom(u, 8), UDM_PROTECTION, "bit");
    GIVES(udm_spawn(u, NULL, NULL), UDM_BAD_ARGUMENT, "null");
    GOOD(udm_next_event(u, &event));
    GOOD(udm_extract(u, &message));
    GIVES(udm_extract(u, &message), UDM_BAD_DISPOSE, "no message");
    /* Another end point of the program has its own handlers. */
    GOOD(udm_inject0(other, 0, 2));
    GOOD(udm_wait(other, LONG, &length));
    EQUAL(length, 1);
    memset(&options, 0, sizeof options);
    options.name = "third";
    GOOD(udm_open(&other, &options));
    GOOD(udm_close(other));
    ran++;
}

/* A handler of one end point calls the other one, in the middle of its call. */
static void calls_back(udm_t *u, void *argument) {
    GIVES(udm_poll((udm_t *)argument, 1, NULL), UDM_IN_HANDLER, "returned");
    GIVES(udm_inject0((udm_t *)argument, 0, 1), UDM_IN_HANDLER, "returned");
    GIVES(udm_close((udm_t *)argument), UDM_IN_HANDLER, "returned");
    GOOD(udm_dispose(u));
    ran++;
}

/* The child is in the handler, too, which is its parent's. */
static void forks(udm_t *u, void *argument) {
    int status;
    pid_t child = fork();
    (void)argument;
    if (child == 0) {
        all_give(u, UDM_FORKED);
        _exit(0);
    }
    EQUAL(waitpid(child, &status, 0), child);
    EQUAL(status, 0);
    GOOD(udm_dispose(u));
    ran++;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "before")) {
        udm_t *first;
        all_give(NULL, UDM_NOT_OPEN);
        open_node(UDM_SAFEPOINT);
        first = udm;
        EQUAL(close_node(), 0);
        all_give(first, UDM_NOT_OPEN);
        /* An old one is refused when another is open. */
        open_node(UDM_SAFEPOINT);
        TRUE(udm != first);
        all_give(first, UDM_NOT_OPEN);
        GOOD(udm_barrier(udm, LONG));
        GOOD(udm_close(udm));
        GIVES(udm_close(udm), UDM_NOT_OPEN, "closed");
    } else if (!strcmp(what, "arguments")) {
        open_node(UDM_SAFEPOINT);
        arguments();
        EQUAL(close_node(), 0);
    } else if (!strcmp(what, "handler")) {
        udm_options options;
        udm_t *other;
        memset(&options, 0, sizeof options);
        options.name = "other";
        open_node(UDM_SAFEPOINT);
        GOOD(udm_open(&other, &options));
        GOOD(udm_on(udm, 1, calls_all, other));
        GOOD(udm_on(other, 2, calls_back, udm));
        GOOD(udm_inject0(udm, 0, 1));
        UNTIL(ran == 2);
        GOOD(udm_close(other));
        EQUAL(close_node(), 0);
    } else if (!strcmp(what, "thread")) {
        pthread_t thread;
        open_node(UDM_SAFEPOINT);
        EQUAL(pthread_create(&thread, NULL, elsewhere, NULL), 0);
        EQUAL(pthread_join(thread, NULL), 0);
        EQUAL(close_node(), 0);
        /* When all is closed, another thread may open. */
        EQUAL(pthread_create(&thread, NULL, opens, NULL), 0);
        EQUAL(pthread_join(thread, NULL), 0);
        open_node(UDM_SAFEPOINT);
        EQUAL(close_node(), 0);
    } else if (!strcmp(what, "fork")) {
        int status;
        pid_t child;
        open_node(UDM_SAFEPOINT);
        child = fork();
        if (child == 0) {
            udm_options options;
            char name[64];
            const char *own = name;
            udm_t *parents = udm;
            all_give(parents, UDM_FORKED);
            snprintf(name, sizeof name, "udm-of-a-child-%d", (int)getpid());
            memset(&options, 0, sizeof options);
            options.group.name = "child";
            options.group.nodes = 1;
            options.group.addresses = &own;
            GOOD(udm_open(&udm, &options));
            all_give(parents, UDM_NOT_OPEN);
            GOOD(udm_on(udm, 1, nothing, NULL));
            GOOD(udm_inject0(udm, 0, 1));
            UNTIL(ran == 1);
            GOOD(udm_close(udm));
            return 0;
        }
        EQUAL(waitpid(child, &status, 0), child);
        EQUAL(status, 0);
        /* Nothing of the parent's changed. */
        GOOD(udm_on(udm, 1, nothing, NULL));
        GOOD(udm_inject0(udm, 0, 1));
        UNTIL(ran == 1);
        EQUAL(close_node(), 0);
    } else if (!strcmp(what, "fork in a handler")) {
        open_node(UDM_SAFEPOINT);
        GOOD(udm_on(udm, 1, forks, NULL));
        GOOD(udm_inject0(udm, 0, 1));
        UNTIL(ran == 1);
        EQUAL(close_node(), 0);
    } else if (!strcmp(what, "fork with upcalls")) {
        int status;
        pid_t child;
        open_node(UDM_THREAD);
        program = pthread_self();
        GOOD(udm_on(udm, 1, holds, NULL));
        GOOD(udm_inject0(udm, 0, 1));
        while (!is_in_handler) {}
        /* The thread of the handlers has all in hand, and the child, which lacks it, exits. */
        child = fork();
        if (child == 0) {
            alarm(60);
            all_give(udm, UDM_FORKED);
            return 0;
        }
        EQUAL(waitpid(child, &status, 0), child);
        is_to_go_on = 1;
        EQUAL(status, 0);
        EQUAL(close_node(), 0);
    } else if (!strcmp(what, "exit")) {
        /* A program may end without closing. */
        open_node(UDM_THREAD);
        GOOD(udm_on(udm, 1, nothing, NULL));
        GOOD(udm_inject0(udm, 0, 1));
    } else {
        return 2;
    }
    printf("%s passed\n", what);
    return 0;
}
