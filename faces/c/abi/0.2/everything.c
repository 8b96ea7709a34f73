/* Both sides of every protocol: `everything serve` and `everything ask`, in a namespace of their own. */
#include <hamlyn.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static hamlyn_error error;

static const int64_t LONG_NS = 60000000000;

#define OK(call)                                                                                                  \
    do {                                                                                                          \
        hamlyn_status status_ = (call);                                                                           \
        if (status_ != HAMLYN_OK) {                                                                               \
            fprintf(stderr, "%s:%d: %s: status %d: %s\n", __FILE__, __LINE__, #call, (int)status_, error.text);    \
            exit(1);                                                                                              \
        }                                                                                                         \
    } while (0)

#define IS(condition)                                                                                             \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                               \
            exit(1);                                                                                              \
        }                                                                                                         \
    } while (0)

#define FAILS(expected, call)                                                                                     \
    do {                                                                                                          \
        error.text[0] = 0;                                                                                        \
        hamlyn_status status_ = (call);                                                                           \
        if (status_ != (expected) || error.status != (expected) || error.text[0] == 0) {                          \
            fprintf(stderr, "%s:%d: %s: status %d, not %d: %s\n", __FILE__, __LINE__, #call, (int)status_,         \
                    (int)(expected), error.text);                                                                 \
            exit(1);                                                                                              \
        }                                                                                                         \
    } while (0)

enum { RECORDS = 1000, RECORD_BYTES_MAX = 40000, WRITES = 100, CALLS = 200, SAMPLES = 50, SAMPLE_BYTES = 100000 };

static unsigned char byte_of(size_t record, size_t at) { return (unsigned char)(record * 31 + at * 7 + at / 251); }

static size_t length_of(size_t record) { return record * 7919 % RECORD_BYTES_MAX; }

static void fill(unsigned char *bytes, size_t length, size_t record) {
    for (size_t at = 0; at < length; at++) {
        bytes[at] = byte_of(record, at);
    }
}

static int is_filled(const unsigned char *bytes, size_t length, size_t record) {
    for (size_t at = 0; at < length; at++) {
        if (bytes[at] != byte_of(record, at)) {
            return 0;
        }
    }
    return 1;
}

/* Waits in poll, as an event loop would, until the datagram is there. */
static void recv_by_descriptor(hamlyn_manager *manager, hamlyn_datagram_receiver *inbox, hamlyn_message *message) {
    int descriptor;
    OK(hamlyn_descriptor(manager, &descriptor, &error));
    for (;;) {
        hamlyn_status status = hamlyn_recv_datagram(inbox, HAMLYN_POLL, message, &error);
        if (status != HAMLYN_TIMED_OUT) {
            OK(status);
            return;
        }
        int64_t timeout_ns;
        OK(hamlyn_prepare_sleep(manager, LONG_NS, &timeout_ns, &error));
        struct pollfd waited = {.fd = descriptor, .events = POLLIN};
        int timeout_ms = timeout_ns < 0 ? -1 : (int)((timeout_ns + 999999) / 1000000);
        IS(poll(&waited, 1, timeout_ms) >= 0);
        OK(hamlyn_end_sleep(manager, &error));
    }
}

static void serve(hamlyn_manager *manager) {
    static unsigned char bytes[SAMPLE_BYTES];
    hamlyn_datagram_receiver *inbox;
    hamlyn_stream_receiver *log;
    hamlyn_tag_receiver *board;
    hamlyn_service *sums;
    hamlyn_group_receiver *parts;
    hamlyn_publisher *frames;
    hamlyn_stream_options stream_options = {.pieces = 4, .piece_bytes = 4096, .limit_bytes = 1 << 20};
    hamlyn_service_options service_options = {.outstanding = 4};
    hamlyn_publisher_options publisher_options = {.message_bytes = SAMPLE_BYTES, .chunks = 8, .slow_readers = HAMLYN_BLOCK};
    OK(hamlyn_bind_datagram(manager, "inbox", 4096, &inbox, &error));
    OK(hamlyn_bind_stream(manager, "log", &stream_options, &log, &error));
    OK(hamlyn_bind_tagged_write(manager, "board", 1 << 16, 256, &board, &error));
    OK(hamlyn_bind_service(manager, "sums", &service_options, &sums, &error));
    OK(hamlyn_bind_group(manager, "parts", 3000, &parts, &error));
    OK(hamlyn_bind_publisher(manager, "frames", &publisher_options, &frames, &error));
    FAILS(HAMLYN_TAKEN, hamlyn_bind_datagram(manager, "inbox", 4096, &inbox, &error));

    /* Datagrams: who sent it, and an answer. */
    hamlyn_message message;
    recv_by_descriptor(manager, inbox, &message);
    IS(message.length_bytes == 5 && memcmp(message.data, "hello", 5) == 0);
    hamlyn_peer peer;
    OK(hamlyn_datagram_peer(inbox, &peer, &error));
    IS(peer.user == geteuid() && peer.process != 0 && peer.process != (uint32_t)getpid());
    hamlyn_ticket ticket;
    OK(hamlyn_datagram_reply_ticket(inbox, &ticket, &error));
    FAILS(HAMLYN_HELD, hamlyn_recv_datagram(inbox, HAMLYN_POLL, &message, &error));
    OK(hamlyn_release_datagram(inbox, &error));
    FAILS(HAMLYN_HELD, hamlyn_release_datagram(inbox, &error));
    hamlyn_datagram_sender *answer;
    OK(hamlyn_grow_datagram(manager, &ticket, LONG_NS, &answer, &error));
    OK(hamlyn_send_datagram(answer, "welcome", 7, LONG_NS, &error));
    OK(hamlyn_fence_datagram(answer, LONG_NS, &error));
    OK(hamlyn_close_datagram_sender(answer, &error));

    /* A stream. */
    for (size_t record = 0; record < RECORDS; record++) {
        OK(hamlyn_recv_record(log, LONG_NS, &message, &error));
        IS(message.length_bytes == length_of(record));
        IS(is_filled(message.data, message.length_bytes, record));
        OK(hamlyn_release_record(log, &error));
    }
    FAILS(HAMLYN_FINISHED, hamlyn_recv_record(log, LONG_NS, &message, &error));
    OK(hamlyn_stream_peer(log, &peer, &error));

    /* Tagged writes. */
    uint64_t sum = 0;
    for (size_t write = 0; write < WRITES; write++) {
        uint64_t tag;
        OK(hamlyn_recv_tag(board, LONG_NS, &tag, &error));
        unsigned char written[64];
        OK(hamlyn_read_area(board, tag * 64, written, sizeof written, &error));
        IS(is_filled(written, sizeof written, tag));
        sum += tag;
    }
    IS(sum == WRITES * (WRITES - 1) / 2);
    FAILS(HAMLYN_INVALID, hamlyn_read_area(board, (1 << 16) - 1, bytes, 2, &error));
    FAILS(HAMLYN_TIMED_OUT, hamlyn_recv_specific_tag(board, 7, HAMLYN_POLL, &error));

    /* Calls: half of them are put off, and answered by pairs in the other order. */
    hamlyn_deferred_call *deferred = NULL;
    for (size_t number = 0; number < CALLS; number++) {
        OK(hamlyn_next_call(sums, LONG_NS, &message, &error));
        OK(hamlyn_call_peer(sums, &peer, &error));
        if (number % 4 == 1) {
            OK(hamlyn_defer_call(sums, &deferred, &error));
            continue;
        }
        IS(message.length_bytes == 100);
        memcpy(bytes, message.data, 100);
        bytes[0]++;
        OK(hamlyn_reply(sums, bytes, 100, &error));
        if (deferred != NULL) {
            OK(hamlyn_deferred_request(sums, deferred, &message, &error));
            memcpy(bytes, message.data, 100);
            bytes[0]++;
            OK(hamlyn_reply_deferred(sums, deferred, bytes, 100, &error));
            FAILS(HAMLYN_BAD_HANDLE, hamlyn_reply_deferred(sums, deferred, bytes, 100, &error));
            deferred = NULL;
        }
    }
    OK(hamlyn_next_call(sums, LONG_NS, &message, &error));
    OK(hamlyn_drop_call(sums, &error));

    /* A group of two members. */
    const uint64_t lengths[] = {1000, 2000};
    OK(hamlyn_begin_group(parts, lengths, 2, &error));
    OK(hamlyn_recv_group(parts, LONG_NS, &message, &error));
    IS(message.length_bytes == 3000);
    IS(is_filled(message.data, 1000, 1) && is_filled((const unsigned char *)message.data + 1000, 2000, 2));
    FAILS(HAMLYN_INVALID, hamlyn_begin_group(parts, lengths, SIZE_MAX / 4, &error));

    /* Loans. */
    OK(hamlyn_await_readers(frames, 1, LONG_NS, &error));
    for (size_t sample = 0; sample < SAMPLES; sample++) {
        void *loan;
        OK(hamlyn_loan(frames, SAMPLE_BYTES, LONG_NS, &loan, &error));
        fill(loan, SAMPLE_BYTES, sample);
        size_t readers;
        OK(hamlyn_publish(frames, LONG_NS, &readers, &error));
        IS(readers == 1);
    }
    FAILS(HAMLYN_TOO_LONG, hamlyn_loan(frames, SAMPLE_BYTES + 1, LONG_NS, (void *[1]){NULL}, &error));

    /* The other side says goodbye, and then it leaves. */
    recv_by_descriptor(manager, inbox, &message);
    IS(message.length_bytes == 3);
    OK(hamlyn_release_datagram(inbox, &error));
    for (;;) {
        hamlyn_event event;
        char text[200];
        OK(hamlyn_next_event(manager, LONG_NS, &event, text, sizeof text, &error));
        IS(strlen(text) > 0);
        if (event.kind == HAMLYN_PEER_LEFT) {
            IS(event.peer.process == peer.process);
            break;
        }
    }
    OK(hamlyn_close_publisher(frames, &error));
    OK(hamlyn_close_group_receiver(parts, &error));
    OK(hamlyn_close_service(sums, &error));
    OK(hamlyn_close_tag_receiver(board, &error));
    OK(hamlyn_close_stream_receiver(log, &error));
    OK(hamlyn_close_datagram_receiver(inbox, &error));
}

static void ask(hamlyn_manager *manager) {
    static unsigned char bytes[SAMPLE_BYTES];
    hamlyn_message message;

    hamlyn_datagram_receiver *answers;
    hamlyn_datagram_sender *outbox;
    OK(hamlyn_bind_datagram(manager, NULL, 64, &answers, &error));
    hamlyn_ticket ticket;
    OK(hamlyn_datagram_ticket(answers, &ticket, &error));
    OK(hamlyn_connect_datagram(manager, "server/inbox", LONG_NS, &outbox, &error));
    OK(hamlyn_send_datagram_to(outbox, 0, "hello", 5, &ticket, LONG_NS, &error));
    OK(hamlyn_fence_datagram(outbox, LONG_NS, &error));
    OK(hamlyn_recv_datagram(answers, LONG_NS, &message, &error));
    IS(message.length_bytes == 7 && memcmp(message.data, "welcome", 7) == 0);
    OK(hamlyn_release_datagram(answers, &error));
    FAILS(HAMLYN_TOO_LONG, hamlyn_send_datagram(outbox, bytes, 4097, LONG_NS, &error));

    hamlyn_stream_sender *log;
    FAILS(HAMLYN_REFUSED, hamlyn_connect_stream(manager, "server/inbox", LONG_NS, &log, &error));
    OK(hamlyn_connect_stream(manager, "server/log", LONG_NS, &log, &error));
    for (size_t record = 0; record < RECORDS; record++) {
        fill(bytes, length_of(record), record);
        OK(hamlyn_send_record(log, bytes, length_of(record), LONG_NS, &error));
    }
    FAILS(HAMLYN_TOO_LONG, hamlyn_send_record(log, bytes, (size_t)2 << 20, LONG_NS, &error));
    OK(hamlyn_flush_stream(log, LONG_NS, &error));
    OK(hamlyn_fence_stream(log, LONG_NS, &error));
    OK(hamlyn_finish_stream(log, LONG_NS, &error));
    OK(hamlyn_close_stream_sender(log, &error));

    hamlyn_tag_sender *board;
    OK(hamlyn_connect_tagged_write(manager, "server/board", LONG_NS, &board, &error));
    for (size_t write = 0; write < WRITES; write++) {
        fill(bytes, 64, write);
        OK(hamlyn_send_tag(board, write * 64, bytes, 64, write, LONG_NS, &error));
    }
    OK(hamlyn_fence_tags(board, LONG_NS, &error));
    OK(hamlyn_close_tag_sender(board, &error));

    hamlyn_client *sums;
    OK(hamlyn_connect_service(manager, "server/sums", LONG_NS, &sums, &error));
    for (size_t number = 0; number < CALLS; number += 2) {
        hamlyn_pending_call *pending[2];
        for (size_t one = 0; one < 2; one++) {
            fill(bytes, 100, number + one);
            OK(hamlyn_start_call(sums, bytes, 100, LONG_NS, &pending[one], &error));
            if (number % 4 == 2) { /* One at a time. */
                OK(hamlyn_take_reply(sums, pending[one], LONG_NS, &message, &error));
                IS(((const unsigned char *)message.data)[0] == (unsigned char)(byte_of(number + one, 0) + 1));
                OK(hamlyn_release_reply(sums, &error));
                OK(hamlyn_close_pending_call(pending[one], &error));
            }
        }
        if (number % 4 == 0) { /* The second is put off until the next call comes. */
            OK(hamlyn_take_reply(sums, pending[0], LONG_NS, &message, &error));
            OK(hamlyn_release_reply(sums, &error));
            OK(hamlyn_close_pending_call(pending[0], &error));
            fill(bytes, 100, number + 2);
            OK(hamlyn_call(sums, bytes, 100, LONG_NS, &message, &error));
            OK(hamlyn_release_reply(sums, &error));
            OK(hamlyn_take_reply(sums, pending[1], LONG_NS, &message, &error));
            IS(message.length_bytes == 100);
            IS(((const unsigned char *)message.data)[0] == (unsigned char)(byte_of(number + 1, 0) + 1));
            OK(hamlyn_release_reply(sums, &error));
            OK(hamlyn_close_pending_call(pending[1], &error));
            fill(bytes, 100, number + 3);
            OK(hamlyn_call(sums, bytes, 100, LONG_NS, &message, &error));
            IS(is_filled((const unsigned char *)message.data + 1, 0, 0));
            OK(hamlyn_release_reply(sums, &error));
            number += 2;
        }
    }
    FAILS(HAMLYN_TOO_LONG, hamlyn_call(sums, bytes, 4097, LONG_NS, &message, &error));
    FAILS(HAMLYN_REFUSED, hamlyn_call(sums, bytes, 1, LONG_NS, &message, &error));
    OK(hamlyn_close_client(sums, &error));

    hamlyn_group_sender *members[2];
    for (size_t member = 0; member < 2; member++) {
        OK(hamlyn_connect_group(manager, "server/parts", LONG_NS, &members[member], &error));
    }
    for (size_t member = 0; member < 2; member++) {
        size_t length = 1000 * (member + 1), half = length / 2;
        fill(bytes, length, member + 1);
        OK(hamlyn_send_part(members[member], 0, bytes, half, 0, LONG_NS, &error));
        OK(hamlyn_send_part(members[member], half, bytes + half, length - half, 1, LONG_NS, &error));
        FAILS(HAMLYN_FINISHED, hamlyn_send_part(members[member], 0, bytes, 1, 1, LONG_NS, &error));
        OK(hamlyn_fence_group(members[member], LONG_NS, &error));
        OK(hamlyn_close_group_sender(members[member], &error));
    }

    hamlyn_subscriber *frames;
    OK(hamlyn_connect_subscriber(manager, "server/frames", LONG_NS, &frames, &error));
    for (size_t sample = 0; sample < SAMPLES; sample++) {
        size_t length;
        uint64_t number, lost;
        OK(hamlyn_recv_sample(frames, LONG_NS, &length, &number, &error));
        IS(length == SAMPLE_BYTES && number == sample);
        OK(hamlyn_read_sample(frames, 0, bytes, length, &error));
        FAILS(HAMLYN_INVALID, hamlyn_read_sample(frames, 1, bytes, length, &error));
        IS(is_filled(bytes, length, sample));
        OK(hamlyn_release_sample(frames, &error));
        OK(hamlyn_samples_lost(frames, &lost, &error));
        IS(lost == 0);
    }
    OK(hamlyn_close_subscriber(frames, &error));

    OK(hamlyn_send_datagram(outbox, "bye", 3, LONG_NS, &error));
    OK(hamlyn_flush(manager, LONG_NS, &error));
    OK(hamlyn_fence(manager, LONG_NS, &error));
    OK(hamlyn_close_datagram_sender(outbox, &error));
    OK(hamlyn_close_datagram_receiver(answers, &error));
}

int main(int argc, char **argv) {
    IS(argc == 3);
    hamlyn_options options;
    OK(hamlyn_default_options(&options, &error));
    options.strategy = (uint32_t)strtoul(argv[2], NULL, 10);
    int serves = strcmp(argv[1], "serve") == 0;
    options.name = serves ? "server" : NULL;
    options.shared = !serves;
    hamlyn_manager *manager;
    OK(hamlyn_open_with(&options, &manager, &error));
    (serves ? serve : ask)(manager);
    OK(hamlyn_close(manager, &error));
    puts("passed");
    return 0;
}
