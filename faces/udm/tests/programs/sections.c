/* Sections, messages that are shown and extracted, handlers that take several, tasks, the
 * register. */
#include "job.h"

enum { COUNT = 0, FORGET = 1, TAKE = 2, ANSWER = 3, SPAWN = 4, NEXT = 5 };

static unsigned counted, answers, taken;
static char order[16];
static size_t orders;

static void on_count(udm_t *u, void *argument) {
    unsigned bits;
    (void)argument;
    GOOD(udm_uac(u, &bits));
    EQUAL(bits & 7, 7);
    GIVES(udm_endatom(u, UDM_INTERRUPT_DISABLE), UDM_DISPOSE_FAILURE, "extract");
    GOOD(udm_dispose(u));
    GOOD(udm_uac(u, &bits));
    EQUAL(bits & 7, 3);
    GOOD(udm_endatom(u, UDM_INTERRUPT_DISABLE));
    GOOD(udm_uac(u, &bits));
    EQUAL(bits & 7, 2);
    counted++;
}

static void on_forget(udm_t *u, void *argument) {
    (void)u;
    (void)argument;
    counted++;
}

/* Takes the messages behind its own, too. */
static void on_take(udm_t *u, void *argument) {
    udm_message own, next, shown;
    int code, is_there;
    (void)argument;
    GOOD(udm_extract(u, &own));
    EQUAL(udm_word(&own, 0), 7);
    taken++;
    for (;;) {
        code = udm_peek(u, &shown);
        GOOD(udm_available(u, &is_there));
        if (code == UDM_BAD_DISPOSE && !is_there) break;
        if (code == UDM_BAD_DISPOSE) continue;
        GOOD(code);
        GOOD(udm_peek(u, &shown));
        EQUAL(shown.handler, NEXT);
        EQUAL(udm_word(&shown, 0), 7 + taken);
        GOOD(udm_extract(u, &next));
        EQUAL(udm_word(&next, 0), 7 + taken);
        EQUAL(udm_word(&own, 0), 7);
        taken++;
    }
    GIVES(udm_extract(u, &next), UDM_BAD_DISPOSE, "no message");
}

static void on_next(udm_t *u, void *argument) {
    (void)argument;
    GOOD(udm_dispose(u));
    taken++;
}

/* Injects before it extracts: that is allowed. */
static void on_answer(udm_t *u, void *argument) {
    udm_message own;
    (void)argument;
    GOOD(udm_peek(u, &own));
    if (udm_word(&own, 0) == 0) GOOD(udm_inject1(u, own.source, ANSWER, 1));
    else answers++;
    GOOD(udm_dispose(u));
}

static void on_task(udm_t *u, void *argument) {
    unsigned bits;
    udm_message message;
    order[orders++] = *(const char *)argument;
    GOOD(udm_uac(u, &bits));
    EQUAL(bits & UDM_DISPOSE_PENDING, 0);
    GIVES(udm_extract(u, &message), UDM_IN_HANDLER, "task");
    GIVES(udm_poll(u, 1, NULL), UDM_IN_HANDLER, "handler");
    if (*(const char *)argument == 'a') GOOD(udm_spawn(u, on_task, (void *)"d"));
}

static void on_spawn(udm_t *u, void *argument) {
    (void)argument;
    GOOD(udm_spawn(u, on_task, (void *)"a"));
    GOOD(udm_spawn(u, on_task, (void *)"b"));
    GOOD(udm_dispose(u));
    order[orders++] = 'h';
}

int main(int argc, char **argv) {
    udm_message message, again;
    udm_statistics statistics;
    unsigned bits, word;
    int is_there;
    size_t ran;
    (void)argv;
    open_node(argc > 1 ? UDM_POLLING : UDM_SAFEPOINT);
    GOOD(udm_on(udm, COUNT, on_count, NULL));
    GOOD(udm_on(udm, FORGET, on_forget, NULL));
    GOOD(udm_on(udm, TAKE, on_take, NULL));
    GOOD(udm_on(udm, ANSWER, on_answer, NULL));
    GOOD(udm_on(udm, SPAWN, on_spawn, NULL));
    GOOD(udm_on(udm, NEXT, on_next, NULL));
    GOOD(udm_barrier(udm, LONG));

    /* No handler runs in a section; its end runs them, unless the program polls only. */
    GOOD(udm_beginatom(udm, UDM_INTERRUPT_DISABLE));
    GOOD(udm_inject0(udm, me, COUNT));
    GOOD(udm_await(udm, LONG));
    GOOD(udm_injectc0(udm, me, COUNT));
    EQUAL(counted, 0);
    GOOD(udm_poll(udm, 1, &ran));
    EQUAL(ran, 1);
    EQUAL(counted, 1);
    GOOD(udm_await(udm, LONG));
    GOOD(udm_endatom(udm, UDM_INTERRUPT_DISABLE));
    if (argc > 1) {
        EQUAL(counted, 1);
        GOOD(udm_poll(udm, 10, &ran));
        EQUAL(ran, 1);
    }
    EQUAL(counted, 2);

    /* The register, and bits that are not the program's. */
    GOOD(udm_uac(udm, &bits));
    EQUAL(bits, 0);
    GOOD(udm_beginatom(udm, UDM_INTERRUPT_DISABLE | UDM_TIMER_FORCE));
    GOOD(udm_uac(udm, &bits));
    EQUAL(bits, 3);
    GOOD(udm_endatom(udm, UDM_TIMER_FORCE));
    GOOD(udm_uac(udm, &bits));
    EQUAL(bits, 1);
    for (word = 4; word < 1024; word <<= 1) {
        GIVES(udm_beginatom(udm, word), UDM_PROTECTION, "bit of the layer");
        GIVES(udm_endatom(udm, word | 1), UDM_PROTECTION, "bit of the layer");
    }
    GOOD(udm_uac(udm, &bits));
    EQUAL(bits, 1);

    /* In that section: shown twice alike, extracted once, and none after that. */
    GIVES(udm_peek(udm, &message), UDM_BAD_DISPOSE, "no message");
    GIVES(udm_extract(udm, &message), UDM_BAD_DISPOSE, "no message");
    GOOD(udm_available(udm, &is_there));
    EQUAL(is_there, 0);
    EQUAL(udm_await(udm, 0), UDM_TIMED_OUT);
    EQUAL(udm_await(udm, 5), UDM_TIMED_OUT);
    GOOD(udm_inject2(udm, me, COUNT, 11, 12));
    GOOD(udm_await(udm, LONG));
    GOOD(udm_peek(udm, &message));
    GOOD(udm_peek(udm, &again));
    EQUAL(udm_word(&again, 1), 12);
    EQUAL(again.source, me);
    GOOD(udm_available(udm, &is_there));
    EQUAL(is_there, 1);
    GOOD(udm_extract(udm, &message));
    EQUAL(message.words, 2);
    EQUAL(udm_word(&message, 0), 11);
    GIVES(udm_extract(udm, &message), UDM_BAD_DISPOSE, "no message");
    /* One that was shown is for its handler, if nobody takes it. */
    GOOD(udm_inject0(udm, me, COUNT));
    GOOD(udm_await(udm, LONG));
    GOOD(udm_peek(udm, &message));
    EQUAL(counted, 2);
    GOOD(udm_endatom(udm, UDM_INTERRUPT_DISABLE));
    UNTIL(counted == 3);

    /* A handler that extracts several finds each once. */
    GOOD(udm_beginatom(udm, UDM_INTERRUPT_DISABLE));
    GOOD(udm_inject1(udm, me, TAKE, 7));
    for (word = 8; word < 12; word++) GOOD(udm_inject1(udm, me, NEXT, word));
    GOOD(udm_await(udm, LONG));
    GOOD(udm_endatom(udm, UDM_INTERRUPT_DISABLE));
    UNTIL(taken == 5);

    /* A handler that extracts nothing is told of, and its message is gone. */
    GOOD(udm_beginatom(udm, UDM_INTERRUPT_DISABLE));
    GOOD(udm_inject0(udm, me, FORGET));
    GOOD(udm_await(udm, LONG));
    if (argc > 1) {
        GOOD(udm_endatom(udm, UDM_INTERRUPT_DISABLE));
        GIVES(udm_poll(udm, 1, &ran), UDM_DISPOSE_FAILURE, "handler 1");
        EQUAL(ran, 1);
    } else {
        GIVES(udm_endatom(udm, UDM_INTERRUPT_DISABLE), UDM_DISPOSE_FAILURE, "handler 1");
    }
    EQUAL(counted, 4);
    GOOD(udm_poll(udm, 1, &ran));
    EQUAL(ran, 0);
    GOOD(udm_inject0(udm, me, FORGET));
    while (counted < 5) {
        int code = udm_wait(udm, LONG, NULL);
        TRUE(code == UDM_OK || (code == UDM_DISPOSE_FAILURE && counted == 5));
    }

    /* Tasks run after the handler, in their order. */
    GOOD(udm_inject0(udm, me, SPAWN));
    UNTIL(orders == 4);
    EQUAL(memcmp(order, "habd", 4), 0);
    GOOD(udm_spawn(udm, on_task, (void *)"e"));
    GOOD(udm_poll(udm, 1, NULL));
    EQUAL(orders, 5);

    /* Each node asks each. The barrier's messages of others may have come in the middle of the
     * above. */
    GOOD(udm_barrier(udm, LONG));
    for (word = 0; word < nodes; word++) GOOD(udm_inject1(udm, word, ANSWER, 0));
    UNTIL(answers == nodes);
    GOOD(udm_get_statistics(udm, &statistics));
    EQUAL(statistics.unhandled, 0);
    return close_node();
}
