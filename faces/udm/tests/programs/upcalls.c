/* Handlers in a thread of their own: they run while the program computes, and never in its
 * sections. */
#include "job.h"

#include <pthread.h>
#include <stdatomic.h>

enum { ADD = 0, FORGET = 1, MESSAGES = 20000 };

/* A pair that a handler changes in two steps; the flag is for the program that only looks. */
static volatile unsigned first, second;
static atomic_uint seen;
static pthread_t program;

static void on_add(udm_t *u, void *argument) {
    udm_message message;
    unsigned bits;
    (void)argument;
    GOOD(udm_extract(u, &message));
    first += udm_word(&message, 0);
    GOOD(udm_uac(u, &bits));
    EQUAL(bits & UDM_INTERRUPT_DISABLE, 1);
    /* A handler may inject, but make no call of the program alone. */
    if (udm_word(&message, 0) == 2) GOOD(udm_inject1(u, message.source, ADD, 1));
    GIVES(udm_poll(u, 1, NULL), UDM_IN_HANDLER, "handler");
    second = first;
    atomic_fetch_add(&seen, 1);
}

static void on_forget(udm_t *u, void *argument) {
    (void)u;
    (void)argument;
    atomic_fetch_add(&seen, 1);
}

int main(void) {
    unsigned to, number, sections = 0, bits, expected;
    udm_statistics statistics;
    udm_message message;
    program = pthread_self();
    open_node(UDM_THREAD);
    GOOD(udm_on(udm, ADD, on_add, NULL));
    GOOD(udm_on(udm, FORGET, on_forget, NULL));
    GOOD(udm_barrier(udm, LONG));

    /* The program makes no call, and its handlers run. */
    GOOD(udm_inject1(udm, (me + 1) % nodes, ADD, 2));
    while (atomic_load(&seen) < 2) {}
    GOOD(udm_barrier(udm, LONG));

    /* Nothing changes in sections, in which the program may extract by itself. */
    expected = 3 + nodes * MESSAGES;
    for (number = 0; number < MESSAGES; number++) {
        for (to = 0; to < nodes; to++) GOOD(udm_inject1(udm, to, ADD, 1));
        GOOD(udm_beginatom(udm, UDM_INTERRUPT_DISABLE));
        GOOD(udm_uac(udm, &bits));
        EQUAL(bits & UDM_INTERRUPT_DISABLE, 1);
        EQUAL(first, second);
        sections++;
        if (number % 16 == 0 && udm_extract(udm, &message) == UDM_OK) {
            first += udm_word(&message, 0);
            second = first;
        }
        EQUAL(first, second);
        GOOD(udm_endatom(udm, UDM_INTERRUPT_DISABLE));
    }
    for (;;) {
        unsigned now;
        GOOD(udm_beginatom(udm, UDM_INTERRUPT_DISABLE));
        now = first;
        GOOD(udm_endatom(udm, UDM_INTERRUPT_DISABLE));
        if (now == expected) break;
        TRUE(now < expected);
    }
    GOOD(udm_uac(udm, &bits));
    EQUAL(bits & UDM_INTERRUPT_DISABLE, 0);
    GIVES(udm_beginatom(udm, 5), UDM_PROTECTION, "bit of the layer");
    GIVES(udm_endatom(udm, 5), UDM_PROTECTION, "bit of the layer");
    GOOD(udm_barrier(udm, LONG));

    /* Outside of a section the next handler would take the place of a message that is shown. */
    GIVES(udm_peek(udm, &message), UDM_BAD_DISPOSE, "begin a section");
    GIVES(udm_extract(udm, &message), UDM_BAD_DISPOSE, "begin a section");
    GIVES(udm_dispose(udm), UDM_BAD_DISPOSE, "begin a section");

    /* A handler that forgets is told of by the next call of the program. */
    number = atomic_load(&seen);
    GOOD(udm_inject0(udm, me, FORGET));
    while (atomic_load(&seen) == number) {}
    GIVES(udm_poll(udm, 0, NULL), UDM_DISPOSE_FAILURE, "handler 1");
    GOOD(udm_get_statistics(udm, &statistics));
    TRUE(statistics.upcalls > 0);
    EQUAL(sections, MESSAGES);
    return close_node();
}
