/* A receiver that takes nothing, and a sender that goes on: options, events, and that nothing is lost. */
#include "checks.h"

enum { MESSAGES = 40000, RECORD_BYTES = 65536, AHEAD_BYTES = 32 * RECORD_BYTES };

/* The sender of a stream fills all of it, while nobody reads. */
static void go_ahead(hamlyn_manager *there, hamlyn_manager *here) {
    static char record[RECORD_BYTES];
    hamlyn_stream_options options = {.piece_bytes = 2048, .limit_bytes = AHEAD_BYTES, .ahead = 1};
    hamlyn_stream_receiver *incoming;
    hamlyn_stream_sender *outgoing;
    hamlyn_message message;
    GETS(HAMLYN_INVALID, "4 KiB", hamlyn_bind_stream(there, "log", &options, &incoming, &error));
    options.piece_bytes = RECORD_BYTES;
    OK(hamlyn_bind_stream(there, "log", &options, &incoming, &error));
    OK(hamlyn_connect_stream(here, "overflow/log", MINUTE, &outgoing, &error));
    for (int number = 0; number < AHEAD_BYTES / RECORD_BYTES; number++) {
        memset(record, number, sizeof record);
        OK(hamlyn_send_record(outgoing, record, sizeof record, MINUTE, &error));
    }
    OK(hamlyn_finish_stream(outgoing, MINUTE, &error));
    for (int number = 0; number < AHEAD_BYTES / RECORD_BYTES; number++) {
        OK(hamlyn_recv_record(incoming, MINUTE, &message, &error));
        memset(record, number, sizeof record);
        IS(message.length_bytes == sizeof record && memcmp(message.data, record, sizeof record) == 0);
        OK(hamlyn_release_record(incoming, &error));
    }
    GETS(HAMLYN_FINISHED, "", hamlyn_recv_record(incoming, MINUTE, &message, &error));
    OK(hamlyn_close_stream_sender(outgoing, &error));
    OK(hamlyn_close_stream_receiver(incoming, &error));
}

int main(void) {
    hamlyn_options options;
    hamlyn_manager *there, *here;
    hamlyn_mailbox_receiver *inbox;
    hamlyn_mailbox_sender *outbox;
    hamlyn_message message;
    hamlyn_event event;
    hamlyn_log_use log_use;
    uint64_t link = 0;
    char text[200];
    uint64_t number = 0;
    int heard = 0;
    OK(hamlyn_default_options(&options, &error));
    options.name = "overflow";
    options.buffer_bytes_per_peer = 3 << 20;
    GETS(HAMLYN_INVALID, "buffer_bytes_per_peer", hamlyn_open_with(&options, &there, &error));
    options.buffer_bytes_per_peer = 4 << 20;
    options.patience_ns = 61000000000;
    GETS(HAMLYN_INVALID, "patience", hamlyn_open_with(&options, &there, &error));
    options.patience_ns = 0;
    options.buffer_bytes_total = 64 << 20;
    OK(hamlyn_open_with(&options, &there, &error));
    OK(hamlyn_default_options(&options, &error));
    options.patience_ns = -1;
    OK(hamlyn_open_with(&options, &here, &error));
    OK(hamlyn_bind_mailbox(there, "in", NULL, &inbox, &error));
    OK(hamlyn_connect_mailbox(here, "overflow/in", MINUTE, &outbox, &error));
    for (number = 0; number < MESSAGES; number++) {
        OK(hamlyn_send_mail(outbox, &number, sizeof number, MINUTE, &error));
    }
    while (hamlyn_next_event(here, HAMLYN_POLL, &event, text, sizeof text, &error) == HAMLYN_OK) {
        if (event.kind == HAMLYN_BUFFERING) {
            IS(!heard && event.count >= 2 << 20 && strstr(text, "takes nothing") && event.peer.user == getuid());
            heard = 1;
            link = event.peer.link;
        }
    }
    IS(heard);
    OK(hamlyn_get_log_use(here, link, &log_use, &error));
    IS(log_use.episodes == 1 && log_use.log_bytes == 4 << 20 && log_use.waiting_bytes >= 2 << 20);
    IS(log_use.spilled_bytes >= log_use.waiting_bytes && log_use.most_bytes == log_use.waiting_bytes);
    IS(log_use.pages * 4096 >= log_use.waiting_bytes && log_use.most_pages == log_use.pages && log_use.pauses == 0);
    for (number = 0; number < MESSAGES; number++) {
        uint64_t came;
        OK(hamlyn_recv_mail(inbox, MINUTE, &message, &error));
        IS(message.length_bytes == sizeof came);
        memcpy(&came, message.data, sizeof came);
        IS(came == number);
    }
    /* The other end hears of it, too. */
    for (heard = 0; hamlyn_next_event(there, HAMLYN_POLL, &event, text, sizeof text, &error) == HAMLYN_OK;) {
        if (event.kind == HAMLYN_BUFFERING_INCOMING) {
            IS(heard == 0 && event.count >= 2 << 20 && strstr(text, "not taken") && event.peer.user == getuid());
            heard = 1;
        } else if (event.kind == HAMLYN_DRAINED_INCOMING) {
            IS(heard == 1 && strstr(text, "was taken"));
            heard = 2;
        }
    }
    IS(heard == 2);
    go_ahead(there, here);
    OK(hamlyn_close_mailbox_receiver(inbox, &error));
    OK(hamlyn_close_mailbox_sender(outbox, &error));
    OK(hamlyn_close(there, &error));

    /* One that lends nothing: its ring is full, and no more is taken. */
    OK(hamlyn_default_options(&options, &error));
    options.name = "no-buffer";
    options.buffer_bytes_per_peer = HAMLYN_NO_BUFFER;
    OK(hamlyn_open_with(&options, &there, &error));
    OK(hamlyn_bind_mailbox(there, "in", NULL, &inbox, &error));
    OK(hamlyn_connect_mailbox(here, "no-buffer/in", MINUTE, &outbox, &error));
    for (number = 0; number < MESSAGES; number++) {
        if (hamlyn_send_mail(outbox, &number, sizeof number, 10000000, &error) != HAMLYN_OK) {
            break;
        }
    }
    IS(error.status == HAMLYN_TIMED_OUT && number < 1000);
    OK(hamlyn_close_mailbox_receiver(inbox, &error));
    OK(hamlyn_close_mailbox_sender(outbox, &error));
    OK(hamlyn_close(here, &error));
    OK(hamlyn_close(there, &error));
    puts("passed");
    return 0;
}
