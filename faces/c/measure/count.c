/* The program whose instructions `hamlyn-lab bench --c` counts: two managers of one thread, one of which sends short messages to the other,
 * some at a time and then the other half of their way. It does what lab/counted/src/calls.rs does in Rust.
 *
 * count PROTOCOL BATCHES NAMESPACE
 *
 * Nothing that is counted waits. What the functions counted_sends and counted_receives call is called before under other names, so
 * that neither setting up nor rings that grow are counted. */
#include <hamlyn.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 32, WARM_UP_BATCHES = 200, BYTES = 16, AREA_BYTES = 4096, QUEUE_ENTRIES = 1024 };

#define SECONDS INT64_C(1000000000)

static hamlyn_error error;

#define OK(call)                                                                                                  \
    do {                                                                                                          \
        if ((call) != HAMLYN_OK) {                                                                                \
            fprintf(stderr, "count.c line %d: %s\n", __LINE__, error.text);                                       \
            exit(1);                                                                                              \
        }                                                                                                         \
    } while (0)

#define IS(condition)                                                                                             \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            fprintf(stderr, "count.c line %d: not so: %s\n", __LINE__, #condition);                               \
            exit(1);                                                                                              \
        }                                                                                                         \
    } while (0)

static const unsigned char DATA[BYTES] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};

static hamlyn_manager *here, *there;

static uint64_t place_of(int turn) { return (uint64_t)turn * BYTES; }

static hamlyn_target *target;
static hamlyn_queue *queue;

static void open_fast_mode(void) {
    hamlyn_area *area;
    hamlyn_slot *slot;
    hamlyn_terminus *terminus;
    hamlyn_ticket ticket;
    hamlyn_slot_options options;
    memset(&options, 0, sizeof options);
    OK(hamlyn_allocate_area(there, AREA_BYTES, HAMLYN_AREA_PRIVATE, &area, &error));
    OK(hamlyn_open_queue(there, QUEUE_ENTRIES, &queue, &error));
    options.queue = queue;
    OK(hamlyn_open_slot(there, area, &options, &slot, &error));
    OK(hamlyn_fast_ticket(slot, 0, AREA_BYTES, &ticket, &error));
    OK(hamlyn_open_terminus(here, 0, 0, 0, &terminus, &error));
    OK(hamlyn_open_target(terminus, &ticket, 5 * SECONDS, &target, &error));
}

static void send_fast_mode(int turn) {
    hamlyn_outgoing_message message = {
        .data = DATA, .length_bytes = BYTES, .offset = place_of(turn), .word = (uint64_t)turn};
    OK(hamlyn_send_msg(target, &message, HAMLYN_POLL, NULL, &error));
}

static void receive_fast_mode(int turn) {
    hamlyn_notification came;
    OK(hamlyn_rcv(queue, HAMLYN_POLL, &came, &error));
    IS(came.word == (uint64_t)turn);
}

static hamlyn_tag_receiver *tags;
static hamlyn_tag_sender *writer;

static void open_tagged_write(void) {
    OK(hamlyn_bind_tagged_write(there, "table", AREA_BYTES, QUEUE_ENTRIES, &tags, &error));
    OK(hamlyn_connect_tagged_write(here, "there/table", 5 * SECONDS, &writer, &error));
}

static void send_tagged_write(int turn) {
    OK(hamlyn_send_tag(writer, place_of(turn), DATA, BYTES, (uint64_t)turn, HAMLYN_POLL, &error));
}

static void receive_tagged_write(int turn) {
    uint64_t tag;
    OK(hamlyn_recv_tag(tags, HAMLYN_POLL, &tag, &error));
    IS(tag == (uint64_t)turn);
}

/* A receiver has room for one datagram, so there are as many as datagrams at a time. */
static hamlyn_datagram_receiver *inboxes[BATCH];
static hamlyn_datagram_sender *outboxes[BATCH];

static void open_datagram(void) {
    for (int turn = 0; turn < BATCH; turn++) {
        hamlyn_ticket ticket;
        OK(hamlyn_bind_datagram(there, NULL, 64, &inboxes[turn], &error));
        OK(hamlyn_datagram_ticket(inboxes[turn], &ticket, &error));
        OK(hamlyn_grow_datagram(here, &ticket, 5 * SECONDS, &outboxes[turn], &error));
    }
}

static void send_datagram(int turn) {
    OK(hamlyn_send_datagram(outboxes[turn], DATA, BYTES, HAMLYN_POLL, &error));
}

static void receive_datagram(int turn) {
    hamlyn_message message;
    OK(hamlyn_recv_datagram(inboxes[turn], HAMLYN_POLL, &message, &error));
    OK(hamlyn_release_datagram(inboxes[turn], &error));
}

static hamlyn_stream_receiver *records;
static hamlyn_stream_sender *stream;

static void open_stream(void) {
    OK(hamlyn_bind_stream(there, "log", NULL, &records, &error));
    OK(hamlyn_connect_stream(here, "there/log", 5 * SECONDS, &stream, &error));
}

static void send_stream(int turn) {
    (void)turn;
    OK(hamlyn_send_record(stream, DATA, BYTES, HAMLYN_POLL, &error));
}

static void receive_stream(int turn) {
    (void)turn;
    hamlyn_message record;
    OK(hamlyn_recv_record(records, HAMLYN_POLL, &record, &error));
    OK(hamlyn_release_record(records, &error));
}

static hamlyn_mailbox_receiver *letters;
static hamlyn_mailbox_sender *writer_of_letters;

static void open_mailbox(void) {
    hamlyn_ticket ticket;
    OK(hamlyn_bind_mailbox(there, NULL, NULL, &letters, &error));
    OK(hamlyn_mailbox_ticket(letters, &ticket, &error));
    OK(hamlyn_grow_mailbox(here, &ticket, 5 * SECONDS, &writer_of_letters, &error));
}

static void send_mailbox(int turn) {
    (void)turn;
    OK(hamlyn_send_mail(writer_of_letters, DATA, BYTES, HAMLYN_POLL, &error));
}

static void receive_mailbox(int turn) {
    (void)turn;
    hamlyn_message mail;
    OK(hamlyn_recv_mail(letters, HAMLYN_POLL, &mail, &error));
}

/* Written out for each protocol, as the call through a pointer would be counted. */
#define MOVE(protocol)                                                                                            \
    __attribute__((noinline)) static void send_some_##protocol(void) {                                            \
        for (int turn = 0; turn < BATCH; turn++) {                                                                \
            send_##protocol(turn);                                                                                \
        }                                                                                                         \
    }                                                                                                             \
    __attribute__((noinline)) static void receive_some_##protocol(void) {                                         \
        for (int turn = 0; turn < BATCH; turn++) {                                                                \
            receive_##protocol(turn);                                                                             \
        }                                                                                                         \
    }                                                                                                             \
    __attribute__((noinline)) static void counted_sends_##protocol(void) {                                        \
        send_some_##protocol();                                                                                   \
        /* Not the last thing that is done here, so it is a call and not a jump. */                               \
        __asm__ volatile("");                                                                                     \
    }                                                                                                             \
    __attribute__((noinline)) static void counted_receives_##protocol(void) {                                     \
        receive_some_##protocol();                                                                                \
        __asm__ volatile("");                                                                                     \
    }                                                                                                             \
    static void count_##protocol(long batches) {                                                                  \
        for (int batch = 0; batch < WARM_UP_BATCHES; batch++) {                                                   \
            send_some_##protocol();                                                                               \
            receive_some_##protocol();                                                                            \
        }                                                                                                         \
        for (long batch = 0; batch < batches; batch++) {                                                          \
            counted_sends_##protocol();                                                                           \
            counted_receives_##protocol();                                                                        \
        }                                                                                                         \
    }

MOVE(fast_mode)
MOVE(tagged_write)
MOVE(datagram)
MOVE(stream)
MOVE(mailbox)

struct protocol {
    const char *name;
    void (*open)(void);
    void (*count)(long batches);
};

static const struct protocol PROTOCOLS[] = {
    {"fast_mode", open_fast_mode, count_fast_mode},
    {"tagged_write", open_tagged_write, count_tagged_write},
    {"datagram", open_datagram, count_datagram},
    {"stream", open_stream, count_stream},
    {"mailbox", open_mailbox, count_mailbox},
};

static hamlyn_manager *opened(const char *name, const char *in_namespace) {
    hamlyn_options options;
    hamlyn_manager *manager;
    OK(hamlyn_default_options(&options, &error));
    options.name = name;
    options.namespace_name = in_namespace;
    /* So that no sleep is counted. */
    options.spin_ns = INT64_MAX / 4;
    OK(hamlyn_open_with(&options, &manager, &error));
    return manager;
}

int main(int count, char **arguments) {
    IS(count == 4);
    const char *name = arguments[1];
    const long batches = strtol(arguments[2], NULL, 10);
    here = opened(NULL, arguments[3]);
    there = opened("there", arguments[3]);
    for (size_t at = 0; at < sizeof PROTOCOLS / sizeof *PROTOCOLS; at++) {
        if (strcmp(PROTOCOLS[at].name, name) == 0) {
            PROTOCOLS[at].open();
            /* The receiver hears of the sender from the control thread of its host. */
            for (size_t peers = 0; peers == 0;) {
                OK(hamlyn_poll(there, &error));
                OK(hamlyn_peers(there, NULL, 0, &peers, &error));
            }
            PROTOCOLS[at].count(batches);
            return 0;
        }
    }
    fprintf(stderr, "count.c: no protocol is called %s\n", name);
    return 1;
}
