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
    OK(hamlyn_close_tag_sender(writer, &error));
    OK(hamlyn_close_tag_receiver(table, &error));
}

static void loans(hamlyn_manager *manager) {
    hamlyn_publisher *publisher;
    OK(hamlyn_bind_publisher(manager, "frames", NULL, &publisher, &error));
    void *data;
    OK(hamlyn_loan(publisher, 100, HAMLYN_POLL, &data, &error));
    GETS(HAMLYN_HELD, "held", hamlyn_loan(publisher, 100, HAMLYN_POLL, &data, &error));
    OK(hamlyn_drop_loan(publisher, &error));
    GETS(HAMLYN_HELD, "no message", hamlyn_drop_loan(publisher, &error));
    OK(hamlyn_close_publisher(publisher, &error));
}

static void services(hamlyn_manager *manager) {
    hamlyn_service *service;
    hamlyn_client *client;
    hamlyn_pending_call *pending;
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
    OK(hamlyn_start_call(client, "second", 6, MINUTE, &pending, &error));
    OK(hamlyn_next_call(service, MINUTE, &message, &error));
    OK(hamlyn_dismiss_client(service, &error));
    hamlyn_status status = hamlyn_take_reply(client, pending, MINUTE, &message, &error);
    IS(status == HAMLYN_REFUSED || status == HAMLYN_FINISHED || status == HAMLYN_PEER_LOST);
    OK(hamlyn_close_client(client, &error));
    OK(hamlyn_close_service(service, &error));
}

/* Two threads with a handle each of one manager. */
static hamlyn_manager *shared;

static void *sends(void *handle) {
    hamlyn_error own;
    hamlyn_manager *manager = handle;
    hamlyn_datagram_sender *outbox;
    if (hamlyn_connect_datagram(manager, "shared/inbox", MINUTE, &outbox, &own)
        || hamlyn_send_datagram(outbox, "from a thread", 13, MINUTE, &own)
        || hamlyn_close_datagram_sender(outbox, &own) || hamlyn_close(manager, &own)) {
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
    hamlyn_manager *another;
    GETS(HAMLYN_INVALID, "null", hamlyn_share_manager(shared, NULL, &error));
    OK(hamlyn_share_manager(shared, &another, &error));
    pthread_t thread;
    IS(pthread_create(&thread, NULL, sends, another) == 0);
    hamlyn_message message;
    OK(hamlyn_recv_datagram(inbox, MINUTE, &message, &error));
    IS(message.length_bytes == 13 && memcmp(message.data, "from a thread", 13) == 0);
    OK(hamlyn_release_datagram(inbox, &error));
    IS(pthread_join(thread, NULL) == 0);
    OK(hamlyn_wait(shared, 1000, &error));
    OK(hamlyn_close_datagram_receiver(inbox, &error));
    OK(hamlyn_close(shared, &error));
}

int main(void) {
    hamlyn_manager *manager, *another;
    OK(hamlyn_open("alone", &manager, &error));
    datagrams(manager);
    tagged_writes(manager);
    loans(manager);
    services(manager);
    GETS(HAMLYN_INVALID, "shared", hamlyn_share_manager(manager, &another, &error));
    OK(hamlyn_wait(manager, HAMLYN_POLL, &error));
    OK(hamlyn_close(manager, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_wait(manager, HAMLYN_POLL, &error));
    threads();
    puts("passed");
    return 0;
}
