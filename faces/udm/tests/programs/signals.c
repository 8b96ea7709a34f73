/* Handlers that interrupt the program by a signal: they run while it computes, or is in the
 * allocator, and never in its sections. */
#include "job.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

enum { ADD = 0, FORGET = 1, MESSAGES = 20000 };

/* A pair that a handler changes in two steps; the others are for the program that only looks. */
static volatile unsigned first, second;
static atomic_uint seen, wrong;
static volatile sig_atomic_t in_section;

static void on_add(udm_t *u, void *argument) {
    udm_message message;
    unsigned bits = 0;
    int good = argument == NULL && !in_section && first == second;
    good &= udm_extract(u, &message) == UDM_OK;
    first += udm_word(&message, 0);
    good &= udm_uac(u, &bits) == UDM_OK && (bits & UDM_INTERRUPT_DISABLE) != 0;
    /* A handler may inject, but make no call of the program alone. */
    if (udm_word(&message, 0) == 2) good &= udm_inject1(u, message.source, ADD, 1) == UDM_OK;
    good &= udm_poll(u, 1, NULL) == UDM_IN_HANDLER;
    good &= udm_inject1(u, 1000000, ADD, 1) == UDM_BAD_NODE;
    second = first;
    if (!good) atomic_fetch_add(&wrong, 1);
    atomic_fetch_add(&seen, 1);
}

static void on_forget(udm_t *u, void *argument) {
    (void)u;
    (void)argument;
    atomic_fetch_add(&seen, 1);
}

static udm_status opens(int interrupt_signal, const char *name) {
    udm_t *other = NULL;
    udm_options options;
    udm_status status;
    memset(&options, 0, sizeof options);
    options.interrupts = UDM_SIGNAL;
    options.interrupt_signal = interrupt_signal;
    options.name = name;
    status = udm_open(&other, &options);
    if (status == UDM_OK) GOOD(udm_close(other));
    return status;
}

static void nothing(int number) { (void)number; }

int main(void) {
    unsigned to, number, bits, expected, now, sections = 0;
    udm_statistics statistics;
    udm_message message;
    struct sigaction before, after;
    void *blocks[64];
    char text[64];
    memset(blocks, 0, sizeof blocks);
    GOOD(sigaction(SIGURG, NULL, &before));
    open_node(UDM_SIGNAL);
    GOOD(udm_on(udm, ADD, on_add, NULL));
    GOOD(udm_on(udm, FORGET, on_forget, NULL));
    GOOD(udm_barrier(udm, LONG));

    /* The program makes no call, and its handlers run. */
    GOOD(udm_inject1(udm, (me + 1) % nodes, ADD, 2));
    while (atomic_load(&seen) < 2) {}
    GOOD(udm_barrier(udm, LONG));

    /* They interrupt the allocator and the formatting of text, and nothing changes in sections, in
     * which the program may extract by itself. */
    expected = 3 + nodes * MESSAGES;
    for (number = 0; number < MESSAGES; number++) {
        for (to = 0; to < nodes; to++) GOOD(udm_inject1(udm, to, ADD, 1));
        free(blocks[number % 64]);
        blocks[number % 64] = malloc(number % 5000 + 1);
        snprintf(text, sizeof text, "%u %f", number, number * 0.5);
        GOOD(udm_beginatom(udm, UDM_INTERRUPT_DISABLE));
        in_section = 1;
        now = first;
        EQUAL(first, second);
        if (number % 16 == 0 && udm_extract(udm, &message) == UDM_OK) {
            first += udm_word(&message, 0);
            now = second = first;
        }
        EQUAL(first, now);
        in_section = 0;
        GOOD(udm_endatom(udm, UDM_INTERRUPT_DISABLE));
        sections++;
    }
    for (number = 0; number < 64; number++) free(blocks[number]);
    /* Without a call. */
    while (first != expected) {}
    GOOD(udm_barrier(udm, LONG));
    EQUAL(first, expected);
    EQUAL(atomic_load(&wrong), 0);
    GOOD(udm_uac(udm, &bits));
    EQUAL(bits & UDM_INTERRUPT_DISABLE, 0);
    GIVES(udm_beginatom(udm, 5), UDM_PROTECTION, "bit of the layer");
    GIVES(udm_peek(udm, &message), UDM_BAD_DISPOSE, "begin a section");

    /* A handler that forgets is told of by the next call of the program. */
    number = atomic_load(&seen);
    GOOD(udm_inject0(udm, me, FORGET));
    while (atomic_load(&seen) == number) {}
    GIVES(udm_poll(udm, 0, NULL), UDM_DISPOSE_FAILURE, "handler 1");
    GOOD(udm_get_statistics(udm, &statistics));
    TRUE(statistics.upcalls > 0);
    EQUAL(sections, MESSAGES);

    /* Signals that cannot be. */
    GIVES(opens(SIGTERM, "wrong"), UDM_BAD_ARGUMENT, "SIGURG");
    signal(SIGUSR1, nothing);
    GIVES(opens(SIGUSR1, "taken"), UDM_IN_USE, "handler already");
    GOOD(udm_barrier(udm, LONG));
    number = close_node();
    GOOD(sigaction(SIGURG, NULL, &after));
    TRUE(before.sa_handler == after.sa_handler);
    return number;
}
