/* Forked children: the test writes `every_call` from the header, calls of all functions that take a handle. Each is refused in a child,
 * the child ends like any program, and nothing is lost between the handles of the parent. */
#include "checks.h"

#include <stdlib.h>
#include <sys/wait.h>

/* One of each kind, by the kind's name. */
struct handles {
    hamlyn_manager *manager;
    hamlyn_area *area;
    hamlyn_queue *queue;
    hamlyn_slot *slot;
    hamlyn_terminus *terminus;
    hamlyn_target *target;
    hamlyn_initiator *initiator;
    hamlyn_counter *counter;
    hamlyn_completion_queue *completion_queue;
    hamlyn_lane *lane;
    hamlyn_lane_sender *lane_sender;
    hamlyn_shared_lane *shared_lane;
    hamlyn_region *region;
    hamlyn_attached *attached;
    hamlyn_window *window;
    hamlyn_handover *handover;
    hamlyn_pool *pool;
    hamlyn_shared_pool *shared_pool;
    hamlyn_detached *detached;
    hamlyn_datagram_receiver *datagram_receiver;
    hamlyn_datagram_sender *datagram_sender;
    hamlyn_mailbox_receiver *mailbox_receiver;
    hamlyn_mailbox_sender *mailbox_sender;
    hamlyn_stream_receiver *stream_receiver;
    hamlyn_stream_sender *stream_sender;
    hamlyn_tag_receiver *tag_receiver;
    hamlyn_tag_sender *tag_sender;
    hamlyn_group_receiver *group_receiver;
    hamlyn_group_sender *group_sender;
    hamlyn_service *service;
    hamlyn_client *client;
    hamlyn_deferred_call *deferred_call;
    hamlyn_pending_call *pending_call;
    hamlyn_publisher *publisher;
    hamlyn_subscriber *subscriber;
    hamlyn_kept_record *kept_record;
    hamlyn_kept_sample *kept_sample;
};

/* For whatever a call reads or writes. */
static _Alignas(4096) union {
    char bytes[1 << 16];
    uint64_t words[1];
    void *handles[1];
} some;

static hamlyn_ticket a_ticket;
static hamlyn_region_ticket a_region;
static hamlyn_member a_member;
static hamlyn_seed a_seed;
static hamlyn_lane_seed a_lane_seed;
static const hamlyn_piece a_piece = {0, 1, 0};
static const hamlyn_atomic_change a_change = {HAMLYN_CHANGE_ADD, 64, 1, 0};

static int complaints;

static void refused(const char *function, hamlyn_status status) {
    if (status != HAMLYN_BAD_HANDLE || error.status != status || strstr(error.text, "in the child") == NULL) {
        fprintf(stderr, "%s in a child: %d %s\n", function, (int)status, status == HAMLYN_OK ? "" : error.text);
        complaints++;
    }
    memset(&error, 0, sizeof error);
}

static void every_call(const struct handles *of, int64_t wait_ns);

static hamlyn_manager *peer;
static hamlyn_queue *peer_queue;
static hamlyn_datagram_receiver *held;

static void drive(const struct handles *of) {
    OK(hamlyn_poll(of->manager, &error));
    OK(hamlyn_poll(peer, &error));
}

/* Until it is there. */
#define COMES(call)                                    \
    do {                                               \
        hamlyn_status status_;                         \
        while ((status_ = (call)) == HAMLYN_TIMED_OUT) \
            drive(of);                                 \
        IS(status_ == HAMLYN_OK);                      \
    } while (0)

/* `manager` has the receivers, and `peer` what sends; the target leads to `manager`, too. */
static void exchange(struct handles *of, char round) {
    char text[32];
    memset(text, round, sizeof text);
    hamlyn_message message;
    uint64_t tag, number, word;
    size_t length;
    OK(hamlyn_send_datagram(of->datagram_sender, text, sizeof text, MINUTE, &error));
    COMES(hamlyn_recv_datagram(of->datagram_receiver, HAMLYN_POLL, &message, &error));
    IS(message.length_bytes == sizeof text && memcmp(message.data, text, sizeof text) == 0);
    OK(hamlyn_release_datagram(of->datagram_receiver, &error));
    OK(hamlyn_send_mail(of->mailbox_sender, text, sizeof text, MINUTE, &error));
    COMES(hamlyn_recv_mail(of->mailbox_receiver, HAMLYN_POLL, &message, &error));
    IS(message.length_bytes == sizeof text && memcmp(message.data, text, sizeof text) == 0);
    OK(hamlyn_send_record(of->stream_sender, text, sizeof text, MINUTE, &error));
    OK(hamlyn_flush_stream(of->stream_sender, MINUTE, &error));
    COMES(hamlyn_recv_record(of->stream_receiver, HAMLYN_POLL, &message, &error));
    IS(message.length_bytes == sizeof text && memcmp(message.data, text, sizeof text) == 0);
    OK(hamlyn_release_record(of->stream_receiver, &error));
    OK(hamlyn_send_tag(of->tag_sender, 0, text, sizeof text, (uint64_t)round, MINUTE, &error));
    COMES(hamlyn_recv_tag(of->tag_receiver, HAMLYN_POLL, &tag, &error));
    IS(tag == (uint64_t)round);
    hamlyn_pending_call *pending;
    OK(hamlyn_start_call(of->client, text, sizeof text, MINUTE, &pending, &error));
    COMES(hamlyn_next_call(of->service, HAMLYN_POLL, &message, &error));
    IS(message.length_bytes == sizeof text && memcmp(message.data, text, sizeof text) == 0);
    OK(hamlyn_reply(of->service, text, 1, &error));
    COMES(hamlyn_take_reply(of->client, pending, HAMLYN_POLL, &message, &error));
    IS(message.length_bytes == 1 && *(const char *)message.data == round);
    OK(hamlyn_release_reply(of->client, &error));
    OK(hamlyn_close_pending_call(pending, &error));
    void *loan;
    OK(hamlyn_loan(of->publisher, sizeof text, MINUTE, &loan, &error));
    memcpy(loan, text, sizeof text);
    OK(hamlyn_publish(of->publisher, MINUTE, NULL, &error));
    COMES(hamlyn_recv_sample(of->subscriber, HAMLYN_POLL, &length, &number, &error));
    IS(length == sizeof text);
    OK(hamlyn_read_sample(of->subscriber, 0, some.bytes, length, &error));
    IS(memcmp(some.bytes, text, sizeof text) == 0);
    OK(hamlyn_release_sample(of->subscriber, &error));
    hamlyn_outgoing_message outgoing;
    memset(&outgoing, 0, sizeof outgoing);
    outgoing.word = (uint64_t)round;
    OK(hamlyn_send_msg(of->target, &outgoing, MINUTE, NULL, &error));
    hamlyn_notification notification;
    COMES(hamlyn_rcv(peer_queue, HAMLYN_POLL, &notification, &error));
    IS(notification.word == (uint64_t)round);
    uint32_t operation;
    OK(hamlyn_begin_read_word(of->initiator, 0, MINUTE, &operation, &error));
    COMES(hamlyn_finish_word(of->initiator, operation, HAMLYN_POLL, &word, &error));
    /* Nothing else came. */
    GETS(HAMLYN_TIMED_OUT, "", hamlyn_recv_datagram(of->datagram_receiver, HAMLYN_POLL, &message, &error));
    GETS(HAMLYN_TIMED_OUT, "", hamlyn_recv_mail(of->mailbox_receiver, HAMLYN_POLL, &message, &error));
    GETS(HAMLYN_TIMED_OUT, "", hamlyn_recv_record(of->stream_receiver, HAMLYN_POLL, &message, &error));
    GETS(HAMLYN_TIMED_OUT, "", hamlyn_recv_tag(of->tag_receiver, HAMLYN_POLL, &tag, &error));
    GETS(HAMLYN_TIMED_OUT, "", hamlyn_next_call(of->service, HAMLYN_POLL, &message, &error));
    GETS(HAMLYN_TIMED_OUT, "", hamlyn_recv_sample(of->subscriber, HAMLYN_POLL, &length, &number, &error));
    GETS(HAMLYN_TIMED_OUT, "", hamlyn_rcv(peer_queue, HAMLYN_POLL, &notification, &error));
    IS(hamlyn_check_attached(of->attached, &error) == HAMLYN_OK);
}

/* A child that calls everything with the message of a receiver held, and ends as programs end. */
static void in_a_child(const struct handles *of) {
    fflush(stdout);
    pid_t child = fork();
    IS(child >= 0);
    if (child == 0) {
        alarm(30);
        every_call(of, HAMLYN_POLL);
        every_call(of, 1000000);
        hamlyn_message message;
        refused("hamlyn_recv_datagram (held)", hamlyn_recv_datagram(held, 0, &message, &error));
        refused("hamlyn_release_datagram (held)", hamlyn_release_datagram(held, &error));
        hamlyn_manager *own;
        OK(hamlyn_open(NULL, &own, &error));
        OK(hamlyn_poll(own, &error));
        OK(hamlyn_close(own, &error));
        exit(complaints != 0);
    }
    int status;
    IS(waitpid(child, &status, 0) == child);
    IS(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void open_lower(struct handles *of) {
    hamlyn_slot_options options;
    hamlyn_area *area, *sparse, *in_pieces;
    hamlyn_slot *slot, *all;
    hamlyn_peer importer;
    uint64_t link, number;
    size_t peers;
    OK(hamlyn_allocate_area(peer, 65536, HAMLYN_AREA_PRIVATE, &area, &error));
    OK(hamlyn_open_queue(peer, 64, &peer_queue, &error));
    memset(&options, 0, sizeof options);
    options.queue = peer_queue;
    options.rights = HAMLYN_RIGHT_READ | HAMLYN_RIGHT_WRITE;
    OK(hamlyn_open_slot(peer, area, &options, &slot, &error));
    OK(hamlyn_fast_ticket(slot, 0, 65536, &a_ticket, &error));
    OK(hamlyn_open_terminus(of->manager, 0, 0, 0, &of->terminus, &error));
    OK(hamlyn_open_target(of->terminus, &a_ticket, MINUTE, &of->target, &error));
    OK(hamlyn_open_initiator(of->manager, &a_ticket, 0, MINUTE, &of->initiator, &error));
    OK(hamlyn_allocate_area(of->manager, 4096, HAMLYN_AREA_PRIVATE, &of->area, &error));
    OK(hamlyn_open_queue(of->manager, 4, &of->queue, &error));
    memset(&options, 0, sizeof options);
    options.queue = of->queue;
    options.entries = 1;
    OK(hamlyn_open_slot(of->manager, of->area, &options, &of->slot, &error));
    OK(hamlyn_open_counter(&of->counter, &error));
    OK(hamlyn_open_completions(of->manager, 4, &of->completion_queue, &error));
    OK(hamlyn_open_lane(of->manager, NULL, &of->lane, &error));
    OK(hamlyn_get_lane_seed(of->lane, &a_lane_seed, &error));
    OK(hamlyn_connect_lane(of->manager, &a_lane_seed, MINUTE, &of->lane_sender, &error));
    OK(hamlyn_open_shared_lane(of->manager, NULL, &of->shared_lane, &error));
    OK(hamlyn_open_area_window(of->area, 0, 4096, &of->window, &error));
    OK(hamlyn_allocate_area(peer, 4096, HAMLYN_AREA_SPARSE, &sparse, &error));
    memset(&options, 0, sizeof options);
    options.rights = HAMLYN_RIGHT_READ;
    OK(hamlyn_open_slot(peer, sparse, &options, &all, &error));
    OK(hamlyn_share_region(all, 0, 4096, HAMLYN_REGION_READ_ONLY, HAMLYN_ALL_LINKED, &of->region, &a_region, &error));
    OK(hamlyn_connect(of->manager, "forked-peer", MINUTE, &link, &error));
    OK(hamlyn_attach_region(of->manager, &a_region, MINUTE, &of->attached, &error));
    OK(hamlyn_allocate_handover(of->manager, 2, 64, &in_pieces, &of->handover, &error));
    OK(hamlyn_open_pool(64, 1, &of->pool, &error));
    OK(hamlyn_poll(peer, &error));
    OK(hamlyn_peers(peer, &importer, 1, &peers, &error));
    IS(peers == 1);
    OK(hamlyn_show_pool(peer, of->pool, importer.link, &number, &error));
    OK(hamlyn_fetch_pool(of->manager, link, number, MINUTE, &of->shared_pool, &error));
    hamlyn_manager *other;
    OK(hamlyn_open(NULL, &other, &error));
    OK(hamlyn_detach(other, &of->detached, &error));
}

int main(void) {
    struct handles all, *of = &all;
    hamlyn_message message;
    hamlyn_datagram_sender *to_held;
    hamlyn_group_receiver *group;
    hamlyn_group_sender *another;
    void *loan;
    size_t length;
    uint64_t number;
    OK(hamlyn_open("forked", &of->manager, &error));
    OK(hamlyn_open("forked-peer", &peer, &error));
    OK(hamlyn_bind_datagram(of->manager, "inbox", 64, &of->datagram_receiver, &error));
    OK(hamlyn_connect_datagram(peer, "forked/inbox", MINUTE, &of->datagram_sender, &error));
    OK(hamlyn_bind_mailbox(of->manager, "mail", NULL, &of->mailbox_receiver, &error));
    OK(hamlyn_connect_mailbox(peer, "forked/mail", MINUTE, &of->mailbox_sender, &error));
    OK(hamlyn_bind_stream(of->manager, "log", NULL, &of->stream_receiver, &error));
    OK(hamlyn_connect_stream(peer, "forked/log", MINUTE, &of->stream_sender, &error));
    OK(hamlyn_bind_tagged_write(of->manager, "tags", 64, 16, &of->tag_receiver, &error));
    OK(hamlyn_connect_tagged_write(peer, "forked/tags", MINUTE, &of->tag_sender, &error));
    OK(hamlyn_bind_group(of->manager, "parts", 64, &of->group_receiver, &error));
    OK(hamlyn_bind_group(peer, "parts", 64, &group, &error));
    OK(hamlyn_begin_group(group, (uint64_t[]){32, 32}, 2, &error));
    OK(hamlyn_connect_group(of->manager, "forked-peer/parts", MINUTE, &of->group_sender, &error));
    OK(hamlyn_connect_group(of->manager, "forked-peer/parts", MINUTE, &another, &error));
    OK(hamlyn_take_member(another, &a_member, &error));
    OK(hamlyn_stream_seed(of->stream_receiver, &a_seed, &error));
    OK(hamlyn_bind_service(of->manager, "service", NULL, &of->service, &error));
    OK(hamlyn_connect_service(peer, "forked/service", MINUTE, &of->client, &error));
    OK(hamlyn_bind_publisher(of->manager, "frames", NULL, &of->publisher, &error));
    OK(hamlyn_connect_subscriber(peer, "forked/frames", MINUTE, &of->subscriber, &error));
    COMES(hamlyn_await_readers(of->publisher, 1, HAMLYN_POLL, &error));
    open_lower(of);
    /* A call that waits for its reply, a record and a sample that are kept, and a datagram that is held. */
    OK(hamlyn_start_call(of->client, "x", 1, MINUTE, &of->pending_call, &error));
    COMES(hamlyn_next_call(of->service, HAMLYN_POLL, &message, &error));
    OK(hamlyn_defer_call(of->service, &of->deferred_call, &error));
    OK(hamlyn_send_record(of->stream_sender, "x", 1, MINUTE, &error));
    OK(hamlyn_flush_stream(of->stream_sender, MINUTE, &error));
    COMES(hamlyn_recv_record(of->stream_receiver, HAMLYN_POLL, &message, &error));
    OK(hamlyn_keep_record(of->stream_receiver, &of->kept_record, &error));
    OK(hamlyn_loan(of->publisher, 1, MINUTE, &loan, &error));
    OK(hamlyn_publish(of->publisher, MINUTE, NULL, &error));
    COMES(hamlyn_recv_sample(of->subscriber, HAMLYN_POLL, &length, &number, &error));
    OK(hamlyn_keep_sample(of->subscriber, &of->kept_sample, &error));
    OK(hamlyn_bind_datagram(of->manager, "held", 64, &held, &error));
    OK(hamlyn_connect_datagram(peer, "forked/held", MINUTE, &to_held, &error));
    OK(hamlyn_send_datagram(to_held, "held", 4, MINUTE, &error));
    COMES(hamlyn_recv_datagram(held, HAMLYN_POLL, &message, &error));

    exchange(of, 'a');
    in_a_child(of);
    exchange(of, 'b');
    IS(memcmp(message.data, "held", 4) == 0);
    in_a_child(of);
    exchange(of, 'c');
    OK(hamlyn_reply_deferred(of->service, of->deferred_call, "y", 1, &error));
    COMES(hamlyn_take_reply(of->client, of->pending_call, HAMLYN_POLL, &message, &error));
    puts("passed");
    return 0;
}
