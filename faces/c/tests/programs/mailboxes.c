/* Mailboxes of one program: their bound and what they refuse, who sent a message and how long it stays, tickets and revocation. */
#include "checks.h"

static char long_mail[(1 << 16) + 1];

static void mailboxes(hamlyn_manager *manager) {
    hamlyn_mailbox_options options = {64 * 8, 64 * 4};
    hamlyn_mailbox_receiver *inbox, *unnamed;
    hamlyn_mailbox_sender *outbox, *grown;
    hamlyn_message message;
    hamlyn_peer peer;
    hamlyn_ticket ticket;
    hamlyn_mailbox_info info;
    uint64_t count;
    size_t longest;
    OK(hamlyn_bind_mailbox(manager, "mail", &options, &inbox, &error));
    GETS(HAMLYN_TAKEN, "mail", hamlyn_bind_mailbox(manager, "mail", NULL, &unnamed, &error));
    options.queue_bytes = 1;
    GETS(HAMLYN_INVALID, "a queue of 1 bytes", hamlyn_bind_mailbox(manager, NULL, &options, &unnamed, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_bind_mailbox(manager, NULL, NULL, NULL, &error));
    OK(hamlyn_connect_mailbox(manager, "mailboxes/mail", MINUTE, &outbox, &error));
    GETS(HAMLYN_REFUSED, "not a datagram",
         hamlyn_connect_datagram(manager, "mailboxes/mail", MINUTE, (hamlyn_datagram_sender *[1]){NULL}, &error));
    GETS(HAMLYN_TIMED_OUT, "nothing came", hamlyn_recv_mail(inbox, HAMLYN_POLL, &message, &error));
    GETS(HAMLYN_NOT_FOUND, "not known", hamlyn_mail_peer(inbox, &peer, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_recv_mail(inbox, HAMLYN_POLL, NULL, &error));
    /* Four find room; the two after them are refused, and the fence says so. */
    for (int turn = 0; turn < 6; turn++) {
        OK(hamlyn_send_mail(outbox, &turn, sizeof turn, HAMLYN_POLL, &error));
    }
    GETS(HAMLYN_REFUSED, "queue is full", hamlyn_fence_mailbox(outbox, MINUTE, &error));
    OK(hamlyn_get_mailbox_info(inbox, &info, &error));
    IS(info.waiting == 4 && info.queued == 4 && info.refusals == 2);
    IS(info.waiting_bytes == 64 * 4 && info.queue_bytes == 64 * 8);
    OK(hamlyn_mailbox_refusals(inbox, HAMLYN_REFUSED_QUEUE_FULL, &count, &error));
    IS(count == 2);
    OK(hamlyn_mailbox_refusals(inbox, HAMLYN_REFUSED_PORT_CLOSED, &count, &error));
    IS(count == 0);
    GETS(HAMLYN_NOT_FOUND, "no refusal", hamlyn_mailbox_refusals(inbox, 27, &count, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_get_mailbox_info(inbox, NULL, &error));
    /* Those that wait stay when tickets are taken back, and a message stays until the next one is taken. */
    OK(hamlyn_recv_mail(inbox, HAMLYN_POLL, &message, &error));
    OK(hamlyn_revoke_mailbox(inbox, &error));
    OK(hamlyn_mail_peer(inbox, &peer, &error));
    IS(peer.user == getuid() && peer.process == (uint32_t)getpid());
    for (int turn = 0; turn < 4; turn++) {
        IS(message.length_bytes == sizeof turn && memcmp(message.data, &turn, sizeof turn) == 0);
        IS((hamlyn_recv_mail(inbox, HAMLYN_POLL, &message, &error) == HAMLYN_OK) == (turn < 3));
    }
    OK(hamlyn_send_mail(outbox, "late", 4, HAMLYN_POLL, &error));
    GETS(HAMLYN_REFUSED, "wrong key", hamlyn_fence_mailbox(outbox, MINUTE, &error));
    OK(hamlyn_mailbox_ticket(inbox, &ticket, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_mailbox_ticket(inbox, NULL, &error));
    OK(hamlyn_grow_mailbox(manager, &ticket, MINUTE, &grown, &error));
    OK(hamlyn_send_mail(grown, NULL, 0, HAMLYN_POLL, &error));
    OK(hamlyn_recv_mail(inbox, MINUTE, &message, &error));
    IS(message.length_bytes == 0 && message.data != NULL);
    GETS(HAMLYN_INVALID, "null", hamlyn_send_mail(grown, NULL, 1, HAMLYN_POLL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_mail_bytes_max(grown, NULL, &error));
    OK(hamlyn_mail_bytes_max(grown, &longest, &error));
    IS(longest == sizeof long_mail - 1);
    GETS(HAMLYN_TOO_LONG, "65537", hamlyn_send_mail(grown, long_mail, sizeof long_mail, HAMLYN_POLL, &error));
    /* One without a name takes the longest. */
    OK(hamlyn_bind_mailbox(manager, NULL, NULL, &unnamed, &error));
    OK(hamlyn_mailbox_ticket(unnamed, &ticket, &error));
    OK(hamlyn_close_mailbox_sender(grown, &error));
    OK(hamlyn_grow_mailbox(manager, &ticket, MINUTE, &grown, &error));
    memset(long_mail, 'x', sizeof long_mail);
    OK(hamlyn_send_mail(grown, long_mail, longest, HAMLYN_POLL, &error));
    OK(hamlyn_recv_mail(unnamed, MINUTE, &message, &error));
    IS(message.length_bytes == longest && memcmp(message.data, long_mail, longest) == 0);
    /* A mailbox that is closed refuses. */
    OK(hamlyn_close_mailbox_receiver(unnamed, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_recv_mail(unnamed, HAMLYN_POLL, &message, &error));
    OK(hamlyn_send_mail(grown, "late", 4, HAMLYN_POLL, &error));
    GETS(HAMLYN_REFUSED, "port", hamlyn_fence_mailbox(grown, MINUTE, &error));
    OK(hamlyn_close_mailbox_sender(grown, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_send_mail(grown, "x", 1, HAMLYN_POLL, &error));
    GETS(HAMLYN_BAD_HANDLE, "another kind", hamlyn_send_mail((hamlyn_mailbox_sender *)inbox, "x", 1, 0, &error));
    OK(hamlyn_close_mailbox_sender(outbox, &error));
    OK(hamlyn_close_mailbox_receiver(inbox, &error));
    OK(hamlyn_close_mailbox_receiver(NULL, &error));
}

int main(void) {
    hamlyn_manager *manager;
    OK(hamlyn_open("mailboxes", &manager, &error));
    mailboxes(manager);
    OK(hamlyn_close(manager, &error));
    puts("passed");
    return 0;
}
