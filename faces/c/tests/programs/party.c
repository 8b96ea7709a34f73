/* A party of the promises in conformance.rs: it does what lines on standard input say, one call for each, and answers each with a line:
 * the status, and what came or the text of the error. Ends of an index share a number per kind, from 0 to 15. Times are in
 * milliseconds; -1: for ever. A party in another language reads the same lines and gives the same answers. */
#include <hamlyn.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENDS = 16, LINE_BYTES = 70000 };

static hamlyn_error error;
static hamlyn_manager *manager;
static hamlyn_datagram_receiver *inboxes[ENDS];
static hamlyn_datagram_sender *outboxes[ENDS];
static hamlyn_mailbox_receiver *mailboxes[ENDS];
static hamlyn_mailbox_sender *posts[ENDS];
static hamlyn_stream_receiver *logs[ENDS];
static hamlyn_stream_sender *writers[ENDS];
static hamlyn_tag_receiver *tables[ENDS];
static hamlyn_tag_sender *taggers[ENDS];
static hamlyn_service *services[ENDS];
static hamlyn_client *clients[ENDS];
static hamlyn_publisher *publishers[ENDS];
static hamlyn_subscriber *subscribers[ENDS];

static hamlyn_area *areas[ENDS];
static hamlyn_slot *slots[ENDS];
static hamlyn_target *targets[ENDS];
static hamlyn_initiator *initiators[ENDS];
static hamlyn_completion_queue *queues[ENDS];

static char answer[LINE_BYTES];

static void say(hamlyn_status status, const char *text) {
    printf("%d %s\n", (int)status, status == HAMLYN_OK ? text : error.text);
    fflush(stdout);
}

static void keep(hamlyn_message message) {
    snprintf(answer, sizeof answer, "%.*s", (int)message.length_bytes, (const char *)message.data);
}

static hamlyn_status open_as(const char *name, const char *strategy) {
    hamlyn_options options;
    hamlyn_status status = hamlyn_default_options(&options, &error);
    options.name = name;
    options.strategy = (uint32_t)atoi(strategy);
    return status ? status : hamlyn_open_with(&options, &manager, &error);
}

static hamlyn_status hold_datagram(int at, int64_t wait_ns) {
    hamlyn_message message;
    hamlyn_status status = hamlyn_recv_datagram(inboxes[at], wait_ns, &message, &error);
    if (status == HAMLYN_OK) {
        keep(message);
    }
    return status;
}

static hamlyn_status receive_datagram(int at, int64_t wait_ns) {
    hamlyn_status status = hold_datagram(at, wait_ns);
    return status ? status : hamlyn_release_datagram(inboxes[at], &error);
}

static hamlyn_status receive_record(int at, int64_t wait_ns) {
    hamlyn_message message;
    hamlyn_status status = hamlyn_recv_record(logs[at], wait_ns, &message, &error);
    if (status == HAMLYN_OK) {
        keep(message);
        status = hamlyn_release_record(logs[at], &error);
    }
    return status;
}

/* So many records, each the number of its turn. */
static hamlyn_status send_records(int at, int count, int64_t wait_ns) {
    hamlyn_status status = HAMLYN_OK;
    for (int turn = 0; turn < count && status == HAMLYN_OK; turn++) {
        char text[16];
        int length = snprintf(text, sizeof text, "%d", turn);
        status = hamlyn_send_record(writers[at], text, (size_t)length, wait_ns, &error);
    }
    return status ? status : hamlyn_flush_stream(writers[at], wait_ns, &error);
}

static hamlyn_status receive_records(int at, int count, int64_t wait_ns) {
    for (int turn = 0; turn < count; turn++) {
        char text[16];
        snprintf(text, sizeof text, "%d", turn);
        hamlyn_status status = receive_record(at, wait_ns);
        if (status != HAMLYN_OK) {
            return status;
        }
        if (strcmp(answer, text) != 0) {
            snprintf(error.text, sizeof error.text, "%.100s came in the place of record %s", answer, text);
            return HAMLYN_MALFORMED;
        }
    }
    return HAMLYN_OK;
}

static hamlyn_status serve_one(int at, int64_t wait_ns) {
    hamlyn_message request;
    hamlyn_status status = hamlyn_next_call(services[at], wait_ns, &request, &error);
    if (status == HAMLYN_OK) {
        keep(request);
        status = hamlyn_reply(services[at], answer, strlen(answer), &error);
    }
    return status;
}

static hamlyn_status call_one(int at, const char *text, int64_t wait_ns) {
    hamlyn_message reply;
    hamlyn_status status = hamlyn_call(clients[at], text, strlen(text), wait_ns, &reply, &error);
    if (status == HAMLYN_OK) {
        keep(reply);
        status = hamlyn_release_reply(clients[at], &error);
    }
    return status;
}

static hamlyn_status publish(int at, const char *text, int64_t wait_ns) {
    void *data;
    size_t readers;
    hamlyn_status status = hamlyn_loan(publishers[at], strlen(text), wait_ns, &data, &error);
    if (status == HAMLYN_OK) {
        memcpy(data, text, strlen(text));
        status = hamlyn_publish(publishers[at], wait_ns, &readers, &error);
        snprintf(answer, sizeof answer, "%zu", readers);
    }
    return status;
}

static hamlyn_status receive_sample(int at, int64_t wait_ns) {
    size_t length;
    hamlyn_status status = hamlyn_recv_sample(subscribers[at], wait_ns, &length, NULL, &error);
    if (status == HAMLYN_OK) {
        length = length < sizeof answer ? length : sizeof answer - 1;
        status = hamlyn_read_sample(subscribers[at], 0, answer, length, &error);
        answer[length] = 0;
        hamlyn_release_sample(subscribers[at], NULL);
    }
    return status;
}

static hamlyn_status next_departure(int64_t wait_ns) {
    hamlyn_event event;
    hamlyn_status status;
    do {
        status = hamlyn_next_event(manager, wait_ns, &event, NULL, 0, &error);
    } while (status == HAMLYN_OK && event.kind != HAMLYN_PEER_LEFT);
    snprintf(answer, sizeof answer, "%u", event.peer.process);
    return status;
}

/* A mailbox with a queue of so many bytes, 0 for the default; "-" is no name. */
static hamlyn_status bind_mailbox(int at, const char *item, const char *queue_bytes) {
    const hamlyn_mailbox_options options = {(uint32_t)atoi(queue_bytes), 0};
    return hamlyn_bind_mailbox(manager, strcmp(item, "-") ? item : NULL, &options, &mailboxes[at], &error);
}

/* Messages of these lengths, separated by commas, whose bytes the seed gives. */
static hamlyn_status send_mail(int at, unsigned seed, const char *lengths, int64_t wait_ns) {
    static unsigned char bytes[LINE_BYTES];
    hamlyn_status status = HAMLYN_OK;
    while (status == HAMLYN_OK && *lengths != 0) {
        char *end;
        const size_t length = strtoul(lengths, &end, 10);
        for (size_t i = 0; i < length && i < sizeof bytes; i++) {
            bytes[i] = (unsigned char)(seed * 31 + length + i * 7);
        }
        status = hamlyn_send_mail(posts[at], bytes, length, wait_ns, &error);
        lengths = *end == ',' ? end + 1 : end;
    }
    return status;
}

/* The process that sent the next message, the length of that, and a hash of its bytes (FNV-1a). */
static hamlyn_status receive_mail(int at, int64_t wait_ns) {
    hamlyn_message message;
    hamlyn_peer peer;
    hamlyn_status status = hamlyn_recv_mail(mailboxes[at], wait_ns, &message, &error);
    if (status == HAMLYN_OK) {
        status = hamlyn_mail_peer(mailboxes[at], &peer, &error);
    }
    if (status == HAMLYN_OK) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        for (size_t i = 0; i < message.length_bytes; i++) {
            hash = (hash ^ ((const unsigned char *)message.data)[i]) * UINT64_C(0x100000001b3);
        }
        snprintf(answer, sizeof answer, "%u %zu %" PRIx64, peer.process, message.length_bytes, hash);
    }
    return status;
}

static hamlyn_status tell_longest_mail(int at) {
    size_t longest = 0;
    hamlyn_status status = hamlyn_mail_bytes_max(posts[at], &longest, &error);
    snprintf(answer, sizeof answer, "%zu", longest);
    return status;
}

/* Messages that wait, bytes that they take, messages that were queued, all refusals, and those for one reason. */
static hamlyn_status tell_mailbox(int at, uint32_t reason) {
    hamlyn_mailbox_info info;
    uint64_t refused;
    hamlyn_status status = hamlyn_get_mailbox_info(mailboxes[at], &info, &error);
    if (status == HAMLYN_OK) {
        status = hamlyn_mailbox_refusals(mailboxes[at], reason, &refused, &error);
    }
    if (status == HAMLYN_OK) {
        snprintf(answer, sizeof answer, "%" PRIu64 " %u %" PRIu64 " %" PRIu64 " %" PRIu64, info.waiting,
                 info.waiting_bytes, info.queued, info.refusals, refused);
    }
    return status;
}

/* Two digits for each byte of a ticket that is used. */
static hamlyn_status tell_mailbox_ticket(int at) {
    hamlyn_ticket ticket;
    hamlyn_status status = hamlyn_mailbox_ticket(mailboxes[at], &ticket, &error);
    for (size_t i = 0; status == HAMLYN_OK && i < HAMLYN_TICKET_USED_BYTES; i++) {
        snprintf(answer + 2 * i, 3, "%02x", ticket.bytes[i]);
    }
    return status;
}

static hamlyn_status grow_mailbox(int at, const char *digits, int64_t wait_ns) {
    hamlyn_ticket ticket = {{0}};
    for (size_t i = 0; i < HAMLYN_TICKET_USED_BYTES && strlen(digits) >= 2 * i + 2; i++) {
        const char byte[3] = {digits[2 * i], digits[2 * i + 1], 0};
        ticket.bytes[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    return hamlyn_grow_mailbox(manager, &ticket, wait_ns, &posts[at], &error);
}

/* Memory that others write, read and change; its ticket is offered under a name. */
static hamlyn_status offer_slot(int at, const char *item) {
    hamlyn_ticket ticket;
    hamlyn_slot_options options;
    memset(&options, 0, sizeof options);
    options.rights = HAMLYN_RIGHT_WRITE | HAMLYN_RIGHT_READ | HAMLYN_RIGHT_ATOMIC;
    hamlyn_status status = hamlyn_allocate_area(manager, 4096, HAMLYN_AREA_PRIVATE, &areas[at], &error);
    status = status ? status : hamlyn_open_slot(manager, areas[at], &options, &slots[at], &error);
    status = status ? status : hamlyn_fast_ticket(slots[at], 0, 4096, &ticket, &error);
    return status ? status : hamlyn_offer(manager, item, HAMLYN_OFFER_ALWAYS, &ticket, HAMLYN_TICKET_USED_BYTES, &error);
}

static hamlyn_status connect_slot(int at, const char *name, const char *item, int64_t wait_ns) {
    static unsigned char offered[HAMLYN_OFFER_BYTES_MAX];
    hamlyn_ticket ticket;
    hamlyn_terminus *terminus;
    size_t length;
    hamlyn_status status = hamlyn_ask(manager, name, item, wait_ns, offered, sizeof offered, &length, &error);
    memset(&ticket, 0, sizeof ticket);
    memcpy(&ticket, offered, HAMLYN_TICKET_USED_BYTES);
    status = status ? status : hamlyn_open_terminus(manager, 0, 0, 0, &terminus, &error);
    status = status ? status : hamlyn_open_target(terminus, &ticket, wait_ns, &targets[at], &error);
    return status ? status : hamlyn_open_initiator(manager, &ticket, 0, wait_ns, &initiators[at], &error);
}

static hamlyn_status send_tracked(int at, const char *text, uint64_t context, int64_t wait_ns) {
    hamlyn_outgoing_message message;
    uint64_t sequence;
    memset(&message, 0, sizeof message);
    message.data = text;
    message.length_bytes = strlen(text);
    hamlyn_status status = hamlyn_send_msg(targets[at], &message, wait_ns, &sequence, &error);
    return status ? status : hamlyn_track_send(queues[at], targets[at], sequence, context, &error);
}

static hamlyn_status fence_tracked(int at, uint64_t context) {
    uint64_t link;
    hamlyn_status status = hamlyn_target_link(targets[at], &link, &error);
    return status ? status : hamlyn_track_fence(queues[at], link, context, &error);
}

/* Adds to the word at 8. */
static hamlyn_status add_tracked(int at, uint64_t operand, uint64_t context, int64_t wait_ns) {
    const hamlyn_atomic_change add = {HAMLYN_CHANGE_ADD, 64, operand, 0};
    uint32_t operation;
    hamlyn_status status = hamlyn_begin_atomic(initiators[at], 8, &add, wait_ns, &operation, &error);
    return status ? status : hamlyn_track_word(queues[at], initiators[at], operation, context, &error);
}

static hamlyn_status number_link(int at, uint64_t context) {
    uint64_t link;
    hamlyn_status status = hamlyn_target_link(targets[at], &link, &error);
    return status ? status : hamlyn_set_link_context(manager, link, context, &error);
}

/* Context, status, word, 1 for a packet that came back, and the text of the error. */
static hamlyn_status next_completion(int at, int64_t wait_ns) {
    hamlyn_work_completion completion;
    hamlyn_error why;
    hamlyn_status status = hamlyn_next_completion(queues[at], wait_ns, &completion, &why, &error);
    if (status == HAMLYN_OK) {
        snprintf(answer, sizeof answer, "%" PRIu64 " %d %" PRIu64 " %d %s", completion.context, (int)completion.status,
                 completion.word, completion.is_returned != 0, completion.status == HAMLYN_OK ? "" : why.text);
    }
    return status;
}

int main(void) {
    static char line[LINE_BYTES];
    while (fgets(line, sizeof line, stdin) != NULL) {
        char verb[32] = "", rest[2][LINE_BYTES / 2] = {"", ""};
        int at = 0;
        long limit_ms = 0;
        answer[0] = 0;
        /* verb index limit text text */
        sscanf(line, "%31s %d %ld %34999s %34999s", verb, &at, &limit_ms, rest[0], rest[1]);
        const int64_t wait_ns = limit_ms < 0 ? HAMLYN_FOREVER : limit_ms * INT64_C(1000000);
        const char *text = rest[0];
        const size_t length = strlen(text);
        if (at < 0 || at >= ENDS) {
            return 2;
        }
#define DO(name, call)                                                                                            \
    if (strcmp(verb, name) == 0) {                                                                                \
        say(call, answer);                                                                                        \
        continue;                                                                                                 \
    }
        DO("open", open_as(text, rest[1]))
        DO("bind_datagram", hamlyn_bind_datagram(manager, text, 64, &inboxes[at], &error))
        DO("connect_datagram", hamlyn_connect_datagram(manager, text, wait_ns, &outboxes[at], &error))
        DO("send_datagram", hamlyn_send_datagram(outboxes[at], text, length, wait_ns, &error))
        DO("fence_datagram", hamlyn_fence_datagram(outboxes[at], wait_ns, &error))
        DO("recv_datagram", receive_datagram(at, wait_ns))
        DO("revoke_datagram", hamlyn_revoke_datagram(inboxes[at], &error))
        DO("close_datagram", hamlyn_close_datagram_receiver(inboxes[at], &error))
        DO("bind_mailbox", bind_mailbox(at, text, rest[1]))
        DO("connect_mailbox", hamlyn_connect_mailbox(manager, text, wait_ns, &posts[at], &error))
        DO("grow_mailbox", grow_mailbox(at, text, wait_ns))
        DO("mail_bytes_max", tell_longest_mail(at))
        DO("send_mail", send_mail(at, (unsigned)atoi(text), rest[1], wait_ns))
        DO("fence_mailbox", hamlyn_fence_mailbox(posts[at], wait_ns, &error))
        DO("recv_mail", receive_mail(at, wait_ns))
        DO("mailbox_ticket", tell_mailbox_ticket(at))
        DO("mailbox_info", tell_mailbox(at, (uint32_t)atoi(text)))
        DO("revoke_mailbox", hamlyn_revoke_mailbox(mailboxes[at], &error))
        DO("bind_stream", hamlyn_bind_stream(manager, text, NULL, &logs[at], &error))
        DO("connect_stream", hamlyn_connect_stream(manager, text, wait_ns, &writers[at], &error))
        DO("send_records", send_records(at, atoi(text), wait_ns))
        DO("recv_records", receive_records(at, atoi(text), wait_ns))
        DO("recv_record", receive_record(at, wait_ns))
        DO("finish_stream", hamlyn_finish_stream(writers[at], wait_ns, &error))
        DO("bind_tags", hamlyn_bind_tagged_write(manager, text, 4096, 16, &tables[at], &error))
        DO("connect_tags", hamlyn_connect_tagged_write(manager, text, wait_ns, &taggers[at], &error))
        DO("send_tag", hamlyn_send_tag(taggers[at], 0, text, length, (uint64_t)atoi(rest[1]), wait_ns, &error))
        DO("fence_tags", hamlyn_fence_tags(taggers[at], wait_ns, &error))
        DO("recv_tag", hamlyn_recv_specific_tag(tables[at], (uint64_t)atoi(text), wait_ns, &error))
        DO("read_tags", hamlyn_read_area(tables[at], 0, answer, (size_t)atoi(text), &error))
        DO("revoke_tags", hamlyn_revoke_area(tables[at], &error))
        DO("bind_service", hamlyn_bind_service(manager, text, NULL, &services[at], &error))
        DO("connect_service", hamlyn_connect_service(manager, text, wait_ns, &clients[at], &error))
        DO("serve", serve_one(at, wait_ns))
        DO("call", call_one(at, text, wait_ns))
        DO("bind_publisher", hamlyn_bind_publisher(manager, text, NULL, &publishers[at], &error))
        DO("await_readers", hamlyn_await_readers(publishers[at], 1, wait_ns, &error))
        DO("publish", publish(at, text, wait_ns))
        DO("connect_subscriber", hamlyn_connect_subscriber(manager, text, wait_ns, &subscribers[at], &error))
        DO("recv_sample", receive_sample(at, wait_ns))
        DO("offer_slot", offer_slot(at, text))
        DO("connect_slot", connect_slot(at, text, rest[1], wait_ns))
        DO("revoke_slot", hamlyn_revoke_slot(slots[at], &error))
        DO("read_slot", hamlyn_copy_from_area(areas[at], 0, answer, (size_t)atoi(text), &error))
        DO("open_completions", hamlyn_open_completions(manager, (size_t)atoi(text), &queues[at], &error))
        DO("send_tracked", send_tracked(at, text, strtoull(rest[1], NULL, 10), wait_ns))
        DO("fence_tracked", fence_tracked(at, strtoull(text, NULL, 10)))
        DO("add_tracked", add_tracked(at, strtoull(text, NULL, 10), strtoull(rest[1], NULL, 10), wait_ns))
        DO("track_refusals", hamlyn_track_refusals(queues[at], &error))
        DO("set_link_context", number_link(at, strtoull(text, NULL, 10)))
        DO("next_completion", next_completion(at, wait_ns))
        DO("next_departure", next_departure(wait_ns))
        DO("poll", hamlyn_poll(manager, &error))
        DO("hold_datagram", hold_datagram(at, wait_ns))
        DO("release_datagram", hamlyn_release_datagram(inboxes[at], &error))
        fprintf(stderr, "party: no verb is called %s\n", verb);
        return 2;
    }
    return 0;
}
