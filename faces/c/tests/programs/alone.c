/* What one program does with itself: revocation, narrower tickets, loans that nobody gets, clients that are shown out, threads. */
#include "checks.h"

#include <pthread.h>

static void datagrams(hamlyn_manager *manager) {
    hamlyn_datagram_receiver *inbox;
    hamlyn_datagram_sender *old, *fresh;
    OK(hamlyn_bind_datagram(manager, "inbox", 64, &inbox, &error));
    OK(hamlyn_connect_datagram(manager, "alone/inbox", MINUTE, &old, &error));
    OK(hamlyn_revoke_datagram(inbox, &error));
    OK(hamlyn_send_datagram(old, "x", 1, HAMLYN_POLL, &error));
    GETS(HAMLYN_REFUSED, "wrong key", hamlyn_fence_datagram(old, MINUTE, &error));
    OK(hamlyn_connect_datagram(manager, "alone/inbox", MINUTE, &fresh, &error));
    OK(hamlyn_send_datagram(fresh, "y", 1, HAMLYN_POLL, &error));
    hamlyn_message message;
    OK(hamlyn_recv_datagram(inbox, MINUTE, &message, &error));
    IS(message.length_bytes == 1 && *(const char *)message.data == 'y');
    GETS(HAMLYN_HELD, "held", hamlyn_revoke_datagram(inbox, &error));
    OK(hamlyn_release_datagram(inbox, &error));
    OK(hamlyn_reset_datagram(inbox, &error));
    hamlyn_slot_info info;
    OK(hamlyn_get_datagram_info(inbox, &info, &error));
    IS(info.length_bytes == 64 && info.refusals == 1 && info.mode == HAMLYN_MODE_ONE_SHOT);
    GETS(HAMLYN_INVALID, "null", hamlyn_get_datagram_info(inbox, NULL, &error));
    uint64_t lost;
    OK(hamlyn_notifications_lost(manager, &lost, &error));
    IS(lost == 0);
    GETS(HAMLYN_INVALID, "null", hamlyn_notifications_lost(manager, NULL, &error));
    OK(hamlyn_close_datagram_sender(old, &error));
    OK(hamlyn_close_datagram_sender(fresh, &error));
    OK(hamlyn_close_datagram_receiver(inbox, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_revoke_datagram(inbox, &error));
}

static void tagged_writes(hamlyn_manager *manager) {
    hamlyn_tag_receiver *table;
    OK(hamlyn_bind_tagged_write(manager, "table", 4096, 16, &table, &error));
    OK(hamlyn_write_area(table, 100, "before", 6, &error));
    GETS(HAMLYN_INVALID, "", hamlyn_write_area(table, 4096, "x", 1, &error));
    hamlyn_ticket part, narrower;
    OK(hamlyn_area_ticket(table, 100, 64, &part, &error));
    GETS(HAMLYN_INVALID, "do not lie", hamlyn_area_ticket(table, 4000, 200, &part, &error));
    OK(hamlyn_narrow_ticket(&part, 2, 4, &narrower, &error));
    GETS(HAMLYN_INVALID, "do not lie", hamlyn_narrow_ticket(&narrower, 0, 5, &part, &error));
    hamlyn_tag_sender *writer;
    OK(hamlyn_grow_tagged_write(manager, &narrower, MINUTE, &writer, &error));
    GETS(HAMLYN_TOO_LONG, "do not lie", hamlyn_send_tag(writer, 0, "12345", 5, 1, HAMLYN_POLL, &error));
    OK(hamlyn_send_tag(writer, 0, "LONG", 4, 7, HAMLYN_POLL, &error));
    uint64_t tag;
    OK(hamlyn_recv_tag(table, MINUTE, &tag, &error));
    IS(tag == 7);
    hamlyn_peer peer;
    OK(hamlyn_tag_peer(table, &peer, &error));
    IS(peer.user == getuid());
    char found[7] = {0};
    OK(hamlyn_read_area(table, 100, found, 6, &error));
    IS(strcmp(found, "beLONG") == 0);
    OK(hamlyn_revoke_area(table, &error));
    OK(hamlyn_send_tag(writer, 0, "late", 4, 8, HAMLYN_POLL, &error));
    GETS(HAMLYN_REFUSED, "wrong key", hamlyn_fence_tags(writer, MINUTE, &error));
    hamlyn_slot_info info;
    OK(hamlyn_get_tags_info(table, &info, &error));
    IS(info.length_bytes == 4096 && info.refusals == 1);
    GETS(HAMLYN_INVALID, "null", hamlyn_get_tags_info(table, NULL, &error));
    uint64_t lost;
    OK(hamlyn_tags_lost(table, &lost, &error));
    IS(lost == 0);
    GETS(HAMLYN_INVALID, "null", hamlyn_tags_lost(table, NULL, &error));
    OK(hamlyn_close_tag_sender(writer, &error));
    OK(hamlyn_close_tag_receiver(table, &error));
}

/* What has no name is reached by seeds and members. */
static void seeds(hamlyn_manager *manager) {
    hamlyn_stream_receiver *records;
    hamlyn_stream_sender *sender;
    hamlyn_seed seed;
    OK(hamlyn_bind_stream(manager, NULL, NULL, &records, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_stream_seed(records, NULL, &error));
    OK(hamlyn_stream_seed(records, &seed, &error));
    hamlyn_seed damaged = seed;
    damaged.bytes[70] ^= 1;
    GETS(HAMLYN_INVALID, "check sum", hamlyn_grow_stream(manager, &damaged, MINUTE, &sender, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_grow_stream(manager, NULL, MINUTE, &sender, &error));
    OK(hamlyn_grow_stream(manager, &seed, MINUTE, &sender, &error));
    OK(hamlyn_send_record(sender, "record", 6, MINUTE, &error));
    OK(hamlyn_flush_stream(sender, MINUTE, &error));
    hamlyn_message record;
    OK(hamlyn_recv_record(records, MINUTE, &record, &error));
    IS(record.length_bytes == 6);
    GETS(HAMLYN_HELD, "held", hamlyn_stream_seed(records, &seed, &error));
    OK(hamlyn_release_record(records, &error));
    OK(hamlyn_close_stream_sender(sender, &error));
    OK(hamlyn_close_stream_receiver(records, &error));
}

static void members(hamlyn_manager *manager) {
    hamlyn_group_receiver *group;
    hamlyn_group_sender *sender, *delegate;
    hamlyn_member whole, parts[2], rest;
    const uint64_t lengths[2] = {4, 6}, too_long[2] = {4, 7};
    OK(hamlyn_bind_group(manager, NULL, 10, &group, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_begin_member(group, NULL, &error));
    OK(hamlyn_begin_member(group, &whole, &error));
    GETS(HAMLYN_INVALID, "", hamlyn_divide_member(&whole, too_long, 2, parts, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_divide_member(&whole, lengths, 2, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_divide_member(&whole, NULL, 2, parts, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_divide_member(NULL, lengths, 2, parts, &error));
    GETS(HAMLYN_INVALID, "longer than memory", hamlyn_divide_member(&whole, lengths, SIZE_MAX / 4, parts, &error));
    OK(hamlyn_divide_member(&whole, lengths, 2, parts, &error));
    whole.bytes[3] ^= 1;
    GETS(HAMLYN_INVALID, "", hamlyn_grow_group(manager, &whole, MINUTE, &sender, &error));
    OK(hamlyn_grow_group(manager, &parts[1], MINUTE, &sender, &error));
    OK(hamlyn_send_part(sender, 0, "two", 3, 0, MINUTE, &error));
    /* The rest of it is a delegate's. */
    OK(hamlyn_take_member(sender, &rest, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_take_member(sender, &rest, &error));
    OK(hamlyn_grow_group(manager, &rest, MINUTE, &delegate, &error));
    OK(hamlyn_send_part(delegate, 3, "end", 3, 1, MINUTE, &error));
    GETS(HAMLYN_FINISHED, "", hamlyn_take_member(delegate, &rest, &error));
    GETS(HAMLYN_BAD_HANDLE, "null", hamlyn_take_member(NULL, &rest, &error));
    OK(hamlyn_grow_group(manager, &parts[0], MINUTE, &sender, &error));
    OK(hamlyn_send_part(sender, 0, "one,", 4, 1, MINUTE, &error));
    hamlyn_message all;
    OK(hamlyn_recv_group(group, MINUTE, &all, &error));
    IS(all.length_bytes == 10 && memcmp(all.data, "one,twoend", 10) == 0);
    OK(hamlyn_close_group_sender(sender, &error));
    OK(hamlyn_close_group_receiver(group, &error));
}

static void loans(hamlyn_manager *manager) {
    hamlyn_publisher *publisher;
    OK(hamlyn_bind_publisher(manager, "frames", NULL, &publisher, &error));
    void *data;
    OK(hamlyn_loan(publisher, 100, HAMLYN_POLL, &data, &error));
    GETS(HAMLYN_HELD, "held", hamlyn_loan(publisher, 100, HAMLYN_POLL, &data, &error));
    OK(hamlyn_drop_loan(publisher, &error));
    GETS(HAMLYN_HELD, "no message", hamlyn_drop_loan(publisher, &error));

    hamlyn_subscriber *subscriber;
    OK(hamlyn_connect_subscriber(manager, "alone/frames", MINUTE, &subscriber, &error));
    OK(hamlyn_await_readers(publisher, 1, MINUTE, &error));
    hamlyn_kept_sample *kept[3];
    for (int i = 0; i < 3; i++) {
        OK(hamlyn_await_room(publisher, MINUTE, &error));
        OK(hamlyn_loan(publisher, 100, HAMLYN_POLL, &data, &error));
        memset(data, i, 100);
        GETS(HAMLYN_HELD, "held", hamlyn_poll_publisher(publisher, &error));
        OK(hamlyn_publish(publisher, MINUTE, NULL, &error));
        size_t length;
        uint64_t number;
        OK(hamlyn_recv_sample(subscriber, MINUTE, &length, &number, &error));
        GETS(HAMLYN_INVALID, "null", hamlyn_keep_sample(subscriber, NULL, &error));
        OK(hamlyn_keep_sample(subscriber, &kept[i], &error));
        GETS(HAMLYN_HELD, "no message", hamlyn_keep_sample(subscriber, &kept[2], &error));
    }
    OK(hamlyn_flush_publisher(publisher, MINUTE, &error));
    for (int i = 2; i >= 0; i--) {
        size_t length;
        uint64_t number;
        unsigned char found[100];
        OK(hamlyn_get_kept_sample(kept[i], &length, &number, &error));
        IS(length == 100);
        GETS(HAMLYN_INVALID, "null", hamlyn_get_kept_sample(kept[i], NULL, NULL, &error));
        OK(hamlyn_read_kept_sample(kept[i], 0, found, 100, &error));
        IS(found[0] == i && found[99] == i);
        GETS(HAMLYN_INVALID, "", hamlyn_read_kept_sample(kept[i], 1, found, 100, &error));
        GETS(HAMLYN_INVALID, "null", hamlyn_read_kept_sample(kept[i], 0, NULL, 1, &error));
        OK(hamlyn_close_kept_sample(kept[i], &error));
        GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_get_kept_sample(kept[i], &length, NULL, &error));
    }
    OK(hamlyn_reclaim_samples(subscriber, &error));
    hamlyn_subscriber_info about;
    OK(hamlyn_get_subscriber_info(subscriber, &about, &error));
    IS(about.lost == 0 && about.depth == 4 && about.message_bytes_max == 1 << 20);
    GETS(HAMLYN_INVALID, "null", hamlyn_get_subscriber_info(subscriber, NULL, &error));
    hamlyn_peer peer;
    OK(hamlyn_publisher_peer(subscriber, &peer, &error));
    IS(peer.user == getuid());
    GETS(HAMLYN_INVALID, "null", hamlyn_publisher_peer(subscriber, NULL, &error));
    OK(hamlyn_poll_publisher(publisher, &error));
    hamlyn_publisher_info all;
    OK(hamlyn_get_publisher_info(publisher, &all, &error));
    IS(all.readers == 1 && all.lost == 0 && all.misbehaved == 0 && all.chunks_free == 16);
    GETS(HAMLYN_INVALID, "null", hamlyn_get_publisher_info(publisher, NULL, &error));
    OK(hamlyn_close_subscriber(subscriber, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_reclaim_samples(subscriber, &error));
    OK(hamlyn_close_publisher(publisher, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_await_room(publisher, 0, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_flush_publisher(publisher, 0, &error));
}

/* Readers get the newest message without another call of the publisher, also one that comes late. */
static void latest(hamlyn_manager *manager) {
    hamlyn_publisher *publisher;
    hamlyn_publisher_options options = {.message_bytes = 64, .chunks = 4, .depth = 2, .slow_readers = HAMLYN_LATEST};
    OK(hamlyn_bind_publisher(manager, "newest", &options, &publisher, &error));
    hamlyn_manager *elsewhere;
    OK(hamlyn_open(NULL, &elsewhere, &error));
    hamlyn_subscriber *readers[2];
    OK(hamlyn_connect_subscriber(elsewhere, "alone/newest", MINUTE, &readers[0], &error));
    OK(hamlyn_await_readers(publisher, 1, MINUTE, &error));
    for (int i = 0; i < 1000; i++) {
        void *data;
        OK(hamlyn_loan(publisher, sizeof i, HAMLYN_POLL, &data, &error));
        memcpy(data, &i, sizeof i);
        OK(hamlyn_publish(publisher, HAMLYN_POLL, NULL, &error));
    }
    OK(hamlyn_connect_subscriber(elsewhere, "alone/newest", MINUTE, &readers[1], &error));
    for (int i = 0; i < 2; i++) {
        size_t length;
        uint64_t number;
        int found;
        OK(hamlyn_recv_sample(readers[i], HAMLYN_POLL, &length, &number, &error));
        OK(hamlyn_read_sample(readers[i], 0, &found, sizeof found, &error));
        IS(length == sizeof found && number == 999 && found == 999);
        OK(hamlyn_release_sample(readers[i], &error));
        GETS(HAMLYN_TIMED_OUT, "", hamlyn_recv_sample(readers[i], HAMLYN_POLL, &length, &number, &error));
        OK(hamlyn_close_subscriber(readers[i], &error));
    }
    OK(hamlyn_close(elsewhere, &error));
    OK(hamlyn_close_publisher(publisher, &error));
}

static void streams(hamlyn_manager *manager) {
    hamlyn_stream_receiver *log, *other;
    hamlyn_stream_sender *writer;
    hamlyn_slot_info info;
    uint64_t memory;
    OK(hamlyn_bind_stream(manager, "log", NULL, &log, &error));
    OK(hamlyn_bind_stream(manager, "other", NULL, &other, &error));
    OK(hamlyn_connect_stream(manager, "alone/log", MINUTE, &writer, &error));
    hamlyn_kept_record *kept[5];
    hamlyn_message record;
    for (char i = 0; i < 5; i++) {
        OK(hamlyn_send_record(writer, &i, 1, MINUTE, &error));
        OK(hamlyn_flush_stream(writer, MINUTE, &error));
        OK(hamlyn_recv_record(log, MINUTE, &record, &error));
        GETS(HAMLYN_HELD, "held", hamlyn_get_stream_info(log, &info, &memory, &error));
        GETS(HAMLYN_INVALID, "null", hamlyn_keep_record(log, NULL, &error));
        OK(hamlyn_keep_record(log, &kept[(int)i], &error));
        GETS(HAMLYN_HELD, "no message", hamlyn_keep_record(log, &kept[(int)i], &error));
    }
    for (int i = 4; i >= 0; i--) {
        OK(hamlyn_view_kept_record(log, kept[i], &record, &error));
        IS(record.length_bytes == 1 && *(const char *)record.data == i);
        GETS(HAMLYN_INVALID, "another stream", hamlyn_view_kept_record(other, kept[i], &record, &error));
        GETS(HAMLYN_INVALID, "null", hamlyn_view_kept_record(log, kept[i], NULL, &error));
        OK(hamlyn_close_kept_record(kept[i], &error));
        GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_view_kept_record(log, kept[i], &record, &error));
    }
    OK(hamlyn_reclaim_records(log, &error));
    OK(hamlyn_get_stream_info(log, &info, &memory, &error));
    IS(memory >= 64 * 16 * 1024);
    GETS(HAMLYN_INVALID, "null", hamlyn_get_stream_info(log, NULL, &memory, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_get_stream_info(log, &info, NULL, &error));
    OK(hamlyn_close_stream_sender(writer, &error));
    OK(hamlyn_close_stream_receiver(log, &error));
    OK(hamlyn_close_stream_receiver(other, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_reclaim_records(log, &error));
}

static void groups(hamlyn_manager *manager) {
    hamlyn_group_receiver *group;
    OK(hamlyn_bind_group(manager, "parts", 4096, &group, &error));
    hamlyn_slot_info info;
    OK(hamlyn_get_group_info(group, &info, &error));
    IS(info.length_bytes == 4096);
    GETS(HAMLYN_INVALID, "null", hamlyn_get_group_info(group, NULL, &error));
    OK(hamlyn_close_group_receiver(group, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_get_group_info(group, &info, &error));
}

static void services(hamlyn_manager *manager) {
    hamlyn_service *service;
    hamlyn_client *client;
    hamlyn_pending_call *pending, *second;
    hamlyn_deferred_call *deferred;
    hamlyn_message message;
    OK(hamlyn_bind_service(manager, "sum", NULL, &service, &error));
    OK(hamlyn_connect_service(manager, "alone/sum", MINUTE, &client, &error));
    OK(hamlyn_start_call(client, "first", 5, MINUTE, &pending, &error));
    OK(hamlyn_next_call(service, MINUTE, &message, &error));
    OK(hamlyn_defer_call(service, &deferred, &error));
    /* Put off, and never answered. */
    OK(hamlyn_close_deferred_call(deferred, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_close_deferred_call(deferred, &error));
    GETS(HAMLYN_HELD, "no message", hamlyn_dismiss_client(service, &error));
    OK(hamlyn_start_call(client, "second", 6, MINUTE, &second, &error));
    OK(hamlyn_next_call(service, MINUTE, &message, &error));
    OK(hamlyn_dismiss_client(service, &error));
    hamlyn_status status = hamlyn_take_reply(client, second, MINUTE, &message, &error);
    IS(status == HAMLYN_REFUSED || status == HAMLYN_FINISHED || status == HAMLYN_PEER_LOST);
    OK(hamlyn_close_pending_call(pending, &error));
    OK(hamlyn_close_pending_call(second, &error));
    uint16_t outstanding;
    uint32_t request_bytes;
    OK(hamlyn_client_limits(client, &outstanding, &request_bytes, &error));
    IS(outstanding > 0 && request_bytes > 0);
    GETS(HAMLYN_INVALID, "null", hamlyn_client_limits(client, NULL, &request_bytes, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_client_limits(client, &outstanding, NULL, &error));
    uint64_t misbehaved;
    OK(hamlyn_service_misbehaved(service, &misbehaved, &error));
    IS(misbehaved == 0);
    GETS(HAMLYN_INVALID, "null", hamlyn_service_misbehaved(service, NULL, &error));
    OK(hamlyn_close_client(client, &error));
    OK(hamlyn_close_service(service, &error));
}

/* Two threads with a handle each of one manager. */
static hamlyn_manager *shared;

static void *sends(void *handle) {
    hamlyn_error own;
    hamlyn_manager *manager = handle;
    hamlyn_datagram_sender *outbox;
    hamlyn_mailbox_sender *writer;
    if (hamlyn_connect_datagram(manager, "shared/inbox", MINUTE, &outbox, &own)
        || hamlyn_send_datagram(outbox, "from a thread", 13, MINUTE, &own)
        || hamlyn_close_datagram_sender(outbox, &own)
        || hamlyn_connect_mailbox(manager, "shared/mail", MINUTE, &writer, &own)
        || hamlyn_send_mail(writer, "from a thread", 13, MINUTE, &own)
        || hamlyn_close_mailbox_sender(writer, &own) || hamlyn_close(manager, &own)) {
        fprintf(stderr, "in a thread: %s\n", own.text);
        _exit(1);
    }
    return NULL;
}

static void threads(void) {
    hamlyn_options options;
    OK(hamlyn_default_options(&options, &error));
    options.name = "shared";
    options.shared = 1;
    OK(hamlyn_open_with(&options, &shared, &error));
    hamlyn_datagram_receiver *inbox;
    OK(hamlyn_bind_datagram(shared, "inbox", 64, &inbox, &error));
    hamlyn_mailbox_receiver *mailbox;
    OK(hamlyn_bind_mailbox(shared, "mail", NULL, &mailbox, &error));
    hamlyn_manager *another;
    GETS(HAMLYN_INVALID, "null", hamlyn_share_manager(shared, NULL, &error));
    OK(hamlyn_share_manager(shared, &another, &error));
    pthread_t thread;
    IS(pthread_create(&thread, NULL, sends, another) == 0);
    hamlyn_message message;
    OK(hamlyn_recv_datagram(inbox, MINUTE, &message, &error));
    IS(message.length_bytes == 13 && memcmp(message.data, "from a thread", 13) == 0);
    OK(hamlyn_release_datagram(inbox, &error));
    OK(hamlyn_recv_mail(mailbox, MINUTE, &message, &error));
    IS(message.length_bytes == 13 && memcmp(message.data, "from a thread", 13) == 0);
    hamlyn_peer peer;
    OK(hamlyn_mail_peer(mailbox, &peer, &error));
    IS(peer.process == (uint32_t)getpid());
    IS(pthread_join(thread, NULL) == 0);
    OK(hamlyn_wait(shared, 1000, &error));
    OK(hamlyn_close_mailbox_receiver(mailbox, &error));
    OK(hamlyn_close_datagram_receiver(inbox, &error));
    OK(hamlyn_close(shared, &error));
}

/* A manager goes from one thread to another. */
static void *attaches(void *handle) {
    hamlyn_error own;
    hamlyn_manager *manager;
    hamlyn_datagram_receiver *inbox;
    if (hamlyn_attach(handle, &manager, &own) || hamlyn_bind_datagram(manager, "inbox", 64, &inbox, &own)
        || hamlyn_close_datagram_receiver(inbox, &own) || hamlyn_close(manager, &own)) {
        fprintf(stderr, "in a thread: %s\n", own.text);
        _exit(1);
    }
    return NULL;
}

static void moving(void) {
    hamlyn_manager *manager;
    hamlyn_queue *queue;
    hamlyn_detached *detached;
    OK(hamlyn_open("moving", &manager, &error));
    OK(hamlyn_open_queue(manager, 4, &queue, &error));
    GETS(HAMLYN_HELD, "close them first", hamlyn_detach(manager, &detached, &error));
    OK(hamlyn_close_queue(queue, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_detach(manager, NULL, &error));
    OK(hamlyn_detach(manager, &detached, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_poll(manager, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_detach(manager, &detached, &error));
    pthread_t thread;
    IS(pthread_create(&thread, NULL, attaches, detached) == 0);
    IS(pthread_join(thread, NULL) == 0);
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_attach(detached, &manager, &error));
    OK(hamlyn_open("moving", &manager, &error));
    OK(hamlyn_detach(manager, &detached, &error));
    OK(hamlyn_close_detached(detached, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_close_detached(detached, &error));
}

int main(void) {
    hamlyn_manager *manager, *another;
    OK(hamlyn_open("alone", &manager, &error));
    datagrams(manager);
    tagged_writes(manager);
    seeds(manager);
    members(manager);
    loans(manager);
    latest(manager);
    streams(manager);
    groups(manager);
    services(manager);
    GETS(HAMLYN_INVALID, "shared", hamlyn_share_manager(manager, &another, &error));
    OK(hamlyn_wait(manager, HAMLYN_POLL, &error));
    OK(hamlyn_close(manager, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_wait(manager, HAMLYN_POLL, &error));
    threads();
    moving();
    puts("passed");
    return 0;
}
