/* Completion queues: what they tell, what they refuse, and waits for several queues; two managers of one program. */
#include "checks.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define AREA_BYTES 65536

struct handles {
    hamlyn_manager *manager;
    hamlyn_queue *queue;
    hamlyn_target *target;
    hamlyn_initiator *initiator;
    hamlyn_completion_queue *completions;
};

static hamlyn_manager *peer;
static hamlyn_area *area;
static hamlyn_queue *peer_queue;
static hamlyn_slot *slot;
static hamlyn_ticket ticket;
static hamlyn_outgoing_message message;
static hamlyn_atomic_change five = {HAMLYN_CHANGE_ADD, 64, 5, 0};
static hamlyn_error why;

static void drive(const struct handles *of) {
    OK(hamlyn_poll(of->manager, &error));
    OK(hamlyn_poll(peer, &error));
}

/* The next completion. Both managers move packets until it is there. */
static hamlyn_work_completion next(const struct handles *of, hamlyn_completion_queue *queue) {
    hamlyn_work_completion completion;
    hamlyn_status status;
    memset(&why, 0, sizeof why);
    memset(&completion, 0xFF, sizeof completion);
    while ((status = hamlyn_next_completion(queue, HAMLYN_POLL, &completion, &why, &error)) == HAMLYN_TIMED_OUT) {
        drive(of);
    }
    IS(status == HAMLYN_OK);
    IS(completion.status == why.status || completion.status == HAMLYN_OK);
    return completion;
}

static void nothing_more(const struct handles *of, hamlyn_completion_queue *queue) {
    hamlyn_work_completion completion;
    drive(of);
    drive(of);
    GETS(HAMLYN_TIMED_OUT, "nothing", hamlyn_next_completion(queue, HAMLYN_POLL, &completion, NULL, &error));
    GETS(HAMLYN_TIMED_OUT, "nothing", hamlyn_next_completion(queue, 1000, &completion, &why, &error));
}

static uint32_t add_five(const struct handles *of) {
    uint32_t operation;
    OK(hamlyn_begin_atomic(of->initiator, 8, &five, MINUTE, &operation, &error));
    return operation;
}

/* Each of my functions with each of its handles. */
static void every_handle_gets(const struct handles *of, hamlyn_status expected, const char *said) {
    hamlyn_completion_queue *made;
    hamlyn_work_completion completion;
    uint64_t word;
    size_t length;
    uint32_t has_room;
    hamlyn_source sources[2] = {{HAMLYN_SOURCE_MESSAGES, of->queue}, {HAMLYN_SOURCE_COMPLETIONS, of->completions}};
    GETS(expected, said, hamlyn_open_completions(of->manager, 4, &made, &error));
    GETS(expected, said, hamlyn_track_send(of->completions, of->target, 1, 1, &error));
    GETS(expected, said, hamlyn_track_fence(of->completions, 1, 1, &error));
    GETS(expected, said, hamlyn_track_operation(of->completions, of->initiator, 1, 1, &error));
    GETS(expected, said, hamlyn_track_word(of->completions, of->initiator, 1, 1, &error));
    GETS(expected, said, hamlyn_track_refusals(of->completions, &error));
    GETS(expected, said, hamlyn_next_completion(of->completions, 0, &completion, NULL, &error));
    GETS(expected, said, hamlyn_next_completion(of->completions, 1000, &completion, &why, &error));
    GETS(expected, said, hamlyn_set_link_context(of->manager, 1, 1, &error));
    GETS(expected, said, hamlyn_link_context(of->manager, 1, &word, &error));
    GETS(expected, said, hamlyn_cells_bytes_max(of->manager, 1, &word, &error));
    GETS(expected, said, hamlyn_packet_bytes_max(of->manager, 1, &length, &error));
    GETS(expected, said, hamlyn_has_room(of->target, &has_room, &error));
    GETS(expected, said, hamlyn_look_within(of->manager, 1, &error));
    GETS(expected, said, hamlyn_await_any(of->manager, sources, 2, 0, &length, &error));
}

/* The handles of sources are looked at one by one. */
static void every_source_gets(const struct handles *valid, hamlyn_queue *queue, hamlyn_completion_queue *completions,
                              hamlyn_status expected, const char *said) {
    size_t ready;
    hamlyn_source sources[2] = {{HAMLYN_SOURCE_MESSAGES, queue}, {HAMLYN_SOURCE_COMPLETIONS, valid->completions}};
    GETS(expected, said, hamlyn_await_any(valid->manager, sources, 2, 0, &ready, &error));
    sources[0].handle = valid->queue;
    sources[1].handle = completions;
    GETS(expected, said, hamlyn_await_any(valid->manager, sources, 2, 0, &ready, &error));
    /* The other is as usable as before. */
    sources[1].handle = valid->completions;
    GETS(HAMLYN_TIMED_OUT, "nothing", hamlyn_await_any(valid->manager, sources, 2, 0, &ready, &error));
}

static struct handles open_handles;

static void *in_another_thread(void *unused) {
    (void)unused;
    every_handle_gets(&open_handles, HAMLYN_OTHER_THREAD, "thread");
    memset(&error, 0, sizeof error);
    IS(hamlyn_close_completions(open_handles.completions, &error) == HAMLYN_OTHER_THREAD);
    return NULL;
}

/* Places that are null, numbers that cannot be, and objects of two managers. */
static void bad_arguments(const struct handles *of) {
    hamlyn_completion_queue *made, *foreign;
    uint64_t link, word;
    size_t ready, length;
    hamlyn_source sources[2] = {{HAMLYN_SOURCE_MESSAGES, of->queue}, {7, of->queue}};
    OK(hamlyn_target_link(of->target, &link, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_open_completions(of->manager, 4, NULL, &error));
    GETS(HAMLYN_INVALID, "65,536", hamlyn_open_completions(of->manager, 0, &made, &error));
    GETS(HAMLYN_INVALID, "65,536", hamlyn_open_completions(of->manager, 65537, &made, &error));
    GETS(HAMLYN_INVALID, "65,536", hamlyn_open_completions(of->manager, (size_t)-1, &made, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_next_completion(of->completions, 0, NULL, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_link_context(of->manager, link, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_cells_bytes_max(of->manager, link, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_packet_bytes_max(of->manager, link, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_has_room(of->target, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_await_any(of->manager, NULL, 1, 0, &ready, &error));
    GETS(HAMLYN_INVALID, "none", hamlyn_await_any(of->manager, sources, 0, 0, &ready, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_await_any(of->manager, sources, 1, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "memory", hamlyn_await_any(of->manager, sources, (size_t)-1, 0, &ready, &error));
    GETS(HAMLYN_INVALID, "HAMLYN_SOURCE_MESSAGES", hamlyn_await_any(of->manager, &sources[1], 1, 0, &ready, &error));
    sources[1] = sources[0];
    GETS(HAMLYN_INVALID, "twice", hamlyn_await_any(of->manager, sources, 2, 0, &ready, &error));

    GETS(HAMLYN_PEER_LOST, "no such link", hamlyn_track_fence(of->completions, UINT64_MAX, 1, &error));
    GETS(HAMLYN_NOT_FOUND, "no such link", hamlyn_set_link_context(of->manager, UINT64_MAX, 1, &error));
    OK(hamlyn_link_context(of->manager, UINT64_MAX, &word, &error));
    IS(word == 0);
    OK(hamlyn_cells_bytes_max(of->manager, UINT64_MAX, &word, &error));
    IS(word == 0);
    GETS(HAMLYN_NOT_FOUND, "no such link", hamlyn_packet_bytes_max(of->manager, UINT64_MAX, &length, &error));
    GETS(HAMLYN_INVALID, "not outstanding", hamlyn_track_operation(of->completions, of->initiator, 77, 1, &error));
    GETS(HAMLYN_INVALID, "not outstanding", hamlyn_track_word(of->completions, of->initiator, UINT32_MAX, 1, &error));

    OK(hamlyn_open_completions(peer, 1, &foreign, &error));
    GETS(HAMLYN_INVALID, "another manager", hamlyn_track_send(foreign, of->target, 1, 1, &error));
    GETS(HAMLYN_INVALID, "another manager", hamlyn_track_operation(foreign, of->initiator, 1, 1, &error));
    GETS(HAMLYN_INVALID, "another manager", hamlyn_track_word(foreign, of->initiator, 1, 1, &error));
    every_source_gets(of, peer_queue, foreign, HAMLYN_INVALID, "another manager");
    every_source_gets(of, NULL, NULL, HAMLYN_BAD_HANDLE, "null");
    every_source_gets(of, (hamlyn_queue *)of->completions, (hamlyn_completion_queue *)of->queue, HAMLYN_BAD_HANDLE,
                      "another kind");
    OK(hamlyn_close_completions(foreign, &error));
    every_source_gets(of, (hamlyn_queue *)foreign, foreign, HAMLYN_BAD_HANDLE, "");
    /* None of that has taken a place, or told anything. */
    nothing_more(of, of->completions);
}

/* Sends, fences and operations end with their own numbers. */
static void ends(const struct handles *of) {
    uint64_t link, sequence, bytes;
    size_t length;
    uint32_t has_room, operation;
    hamlyn_completion_queue *queue;
    static char data[5000];
    memset(data, 'd', sizeof data);
    OK(hamlyn_target_link(of->target, &link, &error));
    OK(hamlyn_cells_bytes_max(of->manager, link, &bytes, &error));
    IS(bytes >= 512 && bytes < 4096);
    OK(hamlyn_packet_bytes_max(of->manager, link, &length, &error));
    IS(length >= 4096);
    OK(hamlyn_has_room(of->target, &has_room, &error));
    IS(has_room != 0);

    OK(hamlyn_open_completions(of->manager, 8, &queue, &error));
    OK(hamlyn_store_to_area(area, 8, 100, &error));
    OK(hamlyn_send_msg(of->target, &message, MINUTE, &sequence, &error));
    OK(hamlyn_track_send(queue, of->target, sequence, 1, &error));
    OK(hamlyn_track_fence(queue, link, 2, &error));
    operation = add_five(of);
    OK(hamlyn_track_word(queue, of->initiator, operation, 3, &error));
    GETS(HAMLYN_INVALID, "not outstanding", hamlyn_finish(of->initiator, operation, HAMLYN_POLL, &error));
    GETS(HAMLYN_INVALID, "not outstanding", hamlyn_track_word(queue, of->initiator, operation, 4, &error));
    OK(hamlyn_begin_put(of->initiator, 100, data, sizeof data, MINUTE, &operation, &error));
    OK(hamlyn_track_operation(queue, of->initiator, operation, UINT64_MAX, &error));
    unsigned seen = 0;
    for (int i = 0; i < 4; i++) {
        hamlyn_work_completion completion = next(of, queue);
        IS(completion.status == HAMLYN_OK && !completion.is_returned && completion.packet.length_bytes == 0);
        IS(completion.word == (completion.context == 3 ? 100 : 0));
        seen |= completion.context == UINT64_MAX ? 16 : 1u << completion.context;
    }
    IS(seen == (2 | 4 | 8 | 16));
    nothing_more(of, queue);
    size_t outstanding;
    OK(hamlyn_outstanding(of->initiator, &outstanding, &error));
    IS(outstanding == 0);
    OK(hamlyn_load_from_area(area, 8, &bytes, &error));
    IS(bytes == 105);
    /* A word that is read. */
    OK(hamlyn_begin_read_word(of->initiator, 8, MINUTE, &operation, &error));
    OK(hamlyn_track_word(queue, of->initiator, operation, 5, &error));
    hamlyn_work_completion read = next(of, queue);
    IS(read.status == HAMLYN_OK && read.context == 5 && read.word == 105);
    /* A message of a terminus that was closed. */
    hamlyn_terminus *terminus;
    hamlyn_target *target;
    OK(hamlyn_open_terminus(of->manager, 0, 0, 0, &terminus, &error));
    OK(hamlyn_open_target(terminus, &ticket, MINUTE, &target, &error));
    OK(hamlyn_send_msg(target, &message, MINUTE, &sequence, &error));
    OK(hamlyn_close_terminus(terminus, &error));
    GETS(HAMLYN_INVALID, "terminus", hamlyn_track_send(queue, target, sequence, 6, &error));
    OK(hamlyn_close_target(target, &error));
    OK(hamlyn_close_completions(queue, &error));
}

/* A queue whose places are taken refuses, by name, and what was refused goes on. */
static void full(const struct handles *of) {
    uint64_t link, sequence, word;
    hamlyn_completion_queue *queue;
    hamlyn_completion state;
    OK(hamlyn_target_link(of->target, &link, &error));
    OK(hamlyn_open_completions(of->manager, 2, &queue, &error));
    OK(hamlyn_track_word(queue, of->initiator, add_five(of), 1, &error));
    OK(hamlyn_track_word(queue, of->initiator, add_five(of), 2, &error));
    uint32_t untracked = add_five(of);
    OK(hamlyn_send_msg(of->target, &message, MINUTE, &sequence, &error));
    GETS(HAMLYN_LIMIT, "all 2 places", hamlyn_track_send(queue, of->target, sequence, 3, &error));
    GETS(HAMLYN_LIMIT, "all 2 places", hamlyn_track_fence(queue, link, 3, &error));
    GETS(HAMLYN_LIMIT, "all 2 places", hamlyn_track_word(queue, of->initiator, untracked, 3, &error));
    GETS(HAMLYN_LIMIT, "all 2 places", hamlyn_track_operation(queue, of->initiator, untracked, 3, &error));
    OK(hamlyn_get_completion(of->target, sequence, &state, &error));
    IS(state == HAMLYN_MESSAGE_SENT);
    hamlyn_status status;
    while ((status = hamlyn_finish_word(of->initiator, untracked, HAMLYN_POLL, &word, &error)) == HAMLYN_TIMED_OUT) {
        drive(of);
    }
    IS(status == HAMLYN_OK);
    /* A completion that waits to be fetched has its place still. */
    GETS(HAMLYN_LIMIT, "fetch completions", hamlyn_track_fence(queue, link, 3, &error));
    hamlyn_work_completion first = next(of, queue);
    OK(hamlyn_track_fence(queue, link, 3, &error));
    hamlyn_work_completion second = next(of, queue), third = next(of, queue);
    IS(first.context + second.context + third.context == 6);
    nothing_more(of, queue);
    OK(hamlyn_close_completions(queue, &error));
}

/* One wait for messages and completions. */
static void several(const struct handles *of) {
    hamlyn_source sources[2] = {{HAMLYN_SOURCE_MESSAGES, of->queue}, {HAMLYN_SOURCE_COMPLETIONS, of->completions}};
    hamlyn_notification came;
    size_t ready;
    uint64_t link;
    OK(hamlyn_target_link(of->target, &link, &error));
    GETS(HAMLYN_TIMED_OUT, "nothing", hamlyn_await_any(of->manager, sources, 2, HAMLYN_POLL, &ready, &error));
    GETS(HAMLYN_TIMED_OUT, "nothing", hamlyn_await_any(of->manager, sources, 2, 1000000, &ready, &error));
    OK(hamlyn_track_fence(of->completions, link, 9, &error));
    OK(hamlyn_poll(peer, &error));
    OK(hamlyn_poll(peer, &error));
    OK(hamlyn_await_any(of->manager, sources, 2, MINUTE, &ready, &error));
    IS(ready == 1);
    IS(next(of, of->completions).context == 9);
    /* A message of the manager's own to its queue. */
    hamlyn_area *own;
    hamlyn_slot *receives;
    hamlyn_slot_options options;
    hamlyn_ticket back;
    hamlyn_terminus *terminus;
    hamlyn_target *target;
    memset(&options, 0, sizeof options);
    options.queue = of->queue;
    OK(hamlyn_allocate_area(of->manager, 4096, HAMLYN_AREA_PRIVATE, &own, &error));
    OK(hamlyn_open_slot(of->manager, own, &options, &receives, &error));
    OK(hamlyn_fast_ticket(receives, 0, 4096, &back, &error));
    OK(hamlyn_open_terminus(peer, 0, 0, 0, &terminus, &error));
    OK(hamlyn_open_target(terminus, &back, MINUTE, &target, &error));
    OK(hamlyn_send_msg(target, &message, MINUTE, NULL, &error));
    OK(hamlyn_await_any(of->manager, sources, 2, MINUTE, &ready, &error));
    IS(ready == 0);
    OK(hamlyn_rcv(of->queue, HAMLYN_POLL, &came, &error));
    OK(hamlyn_close_target(target, &error));
    OK(hamlyn_close_terminus(terminus, &error));
    OK(hamlyn_close_slot(receives, &error));
    OK(hamlyn_close_area(own, &error));
}

/* A wait ends to look again in time: the event loop is told so. */
static void looks(const struct handles *of) {
    int64_t timeout_ns;
    OK(hamlyn_look_within(of->manager, 20000000, &error));
    OK(hamlyn_prepare_sleep(of->manager, 0, &timeout_ns, &error));
    IS(timeout_ns >= 0 && timeout_ns <= 20000000);
    OK(hamlyn_end_sleep(of->manager, &error));
    struct timespec before, after;
    IS(clock_gettime(CLOCK_MONOTONIC, &before) == 0);
    OK(hamlyn_look_within(of->manager, 1000000, &error));
    OK(hamlyn_wait(of->manager, MINUTE, &error));
    IS(clock_gettime(CLOCK_MONOTONIC, &after) == 0);
    IS(after.tv_sec - before.tv_sec < 30);
}

/* Refused packets come with the fence, and by themselves with the context of their link. */
static void refusals(const struct handles *of) {
    uint64_t link, context;
    hamlyn_completion_queue *queue;
    OK(hamlyn_target_link(of->target, &link, &error));
    OK(hamlyn_open_completions(of->manager, 2, &queue, &error));
    OK(hamlyn_set_link_context(of->manager, link, 99, &error));
    OK(hamlyn_link_context(of->manager, link, &context, &error));
    IS(context == 99);
    OK(hamlyn_track_refusals(queue, &error));
    OK(hamlyn_revoke_slot(slot, &error));
    hamlyn_outgoing_message refused = message;
    refused.offset = 5;
    refused.word = 6;
    OK(hamlyn_send_msg(of->target, &refused, MINUTE, NULL, &error));
    OK(hamlyn_track_fence(queue, link, 1, &error));
    unsigned seen = 0;
    for (int i = 0; i < 2; i++) {
        hamlyn_work_completion completion = next(of, queue);
        IS(completion.status == HAMLYN_REFUSED && why.status == HAMLYN_REFUSED);
        IS(strstr(why.text, "revoked") != NULL);
        if (completion.context == 1) {
            IS(!completion.is_returned);
            IS(strstr(why.text, "1 of the packets") != NULL);
            seen |= 1;
            continue;
        }
        IS(completion.context == 99 && completion.is_returned);
        IS(completion.packet.reason == HAMLYN_REFUSED_SLOT_REVOKED);
        IS(completion.packet.offset == 5 && completion.packet.word == 6);
        IS(completion.packet.length_bytes == 3 && completion.packet.entry == HAMLYN_NO_ENTRY);
        hamlyn_undelivered again;
        GETS(HAMLYN_TIMED_OUT, "nothing", hamlyn_next_undelivered(of->manager, &again, NULL, 0, &error));
        seen |= 2;
    }
    IS(seen == 3);
    /* An operation that is refused. */
    OK(hamlyn_track_word(queue, of->initiator, add_five(of), 2, &error));
    hamlyn_work_completion completion = next(of, queue);
    IS(completion.status == HAMLYN_REFUSED && completion.context == 2 && completion.word == 0);
    IS(strstr(why.text, "the target refused the operation") != NULL);
    OK(hamlyn_close_completions(queue, &error));
}

/* An initiator that is closed ends what was given to the queue. */
static void abandoned(const struct handles *of) {
    hamlyn_initiator *initiator;
    hamlyn_completion_queue *queue;
    uint32_t operation;
    OK(hamlyn_open_completions(of->manager, 2, &queue, &error));
    OK(hamlyn_open_initiator(of->manager, &ticket, 0, MINUTE, &initiator, &error));
    OK(hamlyn_begin_atomic(initiator, 8, &five, MINUTE, &operation, &error));
    OK(hamlyn_track_word(queue, initiator, operation, 7, &error));
    OK(hamlyn_close_initiator(initiator, &error));
    hamlyn_work_completion completion = next(of, queue);
    IS(completion.context == 7 && completion.status == HAMLYN_BAD_HANDLE);
    IS(strstr(why.text, "initiator was dropped") != NULL);
    /* It is carried out all the same. */
    uint64_t link;
    OK(hamlyn_target_link(of->target, &link, &error));
    OK(hamlyn_track_fence(queue, link, 8, &error));
    completion = next(of, queue);
    IS(completion.context == 8 && completion.status == HAMLYN_OK);
    OK(hamlyn_close_completions(queue, &error));
}

/* A link that ends fails its fences, its operations and its messages. */
static void lost(const struct handles *of) {
    uint64_t link, sequence = 0;
    hamlyn_completion_queue *queue;
    hamlyn_completion state = HAMLYN_MESSAGE_SENT;
    OK(hamlyn_target_link(of->target, &link, &error));
    OK(hamlyn_open_completions(of->manager, 8, &queue, &error));
    /* Its peer takes nothing, so one has to wait. */
    for (int i = 0; i < 1000000 && state != HAMLYN_MESSAGE_PENDING; i++) {
        OK(hamlyn_send_msg(of->target, &message, HAMLYN_POLL, &sequence, &error));
        OK(hamlyn_get_completion(of->target, sequence, &state, &error));
    }
    IS(state == HAMLYN_MESSAGE_PENDING);
    OK(hamlyn_track_send(queue, of->target, sequence, 1, &error));
    OK(hamlyn_track_fence(queue, link, 2, &error));
    hamlyn_work_completion completion;
    GETS(HAMLYN_TIMED_OUT, "nothing", hamlyn_next_completion(queue, 1000000, &completion, NULL, &error));
    OK(hamlyn_disconnect(of->manager, link, &error));
    unsigned seen = 0;
    for (int i = 0; i < 2; i++) {
        completion = next(of, queue);
        IS(completion.status == HAMLYN_PEER_LOST && !completion.is_returned);
        IS(why.text[0] != 0);
        seen |= 1u << completion.context;
    }
    IS(seen == (2 | 4));
    OK(hamlyn_close_completions(queue, &error));
}

int main(void) {
    struct handles *of = &open_handles;
    hamlyn_slot_options options;
    hamlyn_options without_buffer;
    OK(hamlyn_open("completions", &of->manager, &error));
    OK(hamlyn_default_options(&without_buffer, &error));
    without_buffer.name = "completions-peer";
    without_buffer.buffer_bytes_per_peer = HAMLYN_NO_BUFFER;
    OK(hamlyn_open_with(&without_buffer, &peer, &error));
    OK(hamlyn_allocate_area(peer, AREA_BYTES, HAMLYN_AREA_PRIVATE, &area, &error));
    OK(hamlyn_open_queue(peer, 64, &peer_queue, &error));
    memset(&options, 0, sizeof options);
    options.rights = HAMLYN_RIGHT_WRITE | HAMLYN_RIGHT_READ | HAMLYN_RIGHT_ATOMIC;
    OK(hamlyn_open_slot(peer, area, &options, &slot, &error));
    OK(hamlyn_fast_ticket(slot, 0, AREA_BYTES, &ticket, &error));
    hamlyn_terminus *terminus;
    OK(hamlyn_open_terminus(of->manager, 0, 0, 0, &terminus, &error));
    OK(hamlyn_open_target(terminus, &ticket, MINUTE, &of->target, &error));
    OK(hamlyn_open_queue(of->manager, 4, &of->queue, &error));
    OK(hamlyn_open_initiator(of->manager, &ticket, 0, MINUTE, &of->initiator, &error));
    OK(hamlyn_open_completions(of->manager, 4, &of->completions, &error));
    message.data = "one";
    message.length_bytes = 3;

    /* Null, another kind, and another thread. */
    struct handles none, wrong = {
        .manager = (hamlyn_manager *)of->queue,         .queue = (hamlyn_queue *)of->target,
        .target = (hamlyn_target *)of->initiator,       .initiator = (hamlyn_initiator *)of->completions,
        .completions = (hamlyn_completion_queue *)of->manager,
    };
    memset(&none, 0, sizeof none);
    every_handle_gets(&none, HAMLYN_BAD_HANDLE, "null");
    OK(hamlyn_close_completions(NULL, &error));
    every_handle_gets(&wrong, HAMLYN_BAD_HANDLE, "another kind");
    GETS(HAMLYN_BAD_HANDLE, "another kind", hamlyn_close_completions(wrong.completions, &error));
    pthread_t thread;
    IS(pthread_create(&thread, NULL, in_another_thread, NULL) == 0);
    IS(pthread_join(thread, NULL) == 0);

    bad_arguments(of);
    ends(of);
    full(of);
    several(of);
    looks(of);
    abandoned(of);
    refusals(of);
    lost(of);

    /* Closed. The manager's handle may go first. */
    OK(hamlyn_close(of->manager, &error));
    OK(hamlyn_close_target(of->target, &error));
    OK(hamlyn_close_initiator(of->initiator, &error));
    OK(hamlyn_close_queue(of->queue, &error));
    OK(hamlyn_close_completions(of->completions, &error));
    OK(hamlyn_close_terminus(terminus, &error));
    every_handle_gets(of, HAMLYN_BAD_HANDLE, "closed");
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_close_completions(of->completions, &error));
    OK(hamlyn_close_slot(slot, &error));
    OK(hamlyn_close_queue(peer_queue, &error));
    OK(hamlyn_close_area(area, &error));
    OK(hamlyn_close(peer, &error));
    puts("passed");
    return 0;
}
