/* A receiver that takes nothing, and a sender that goes on: options, events, and that nothing is lost. */
#include "checks.h"

enum { MESSAGES = 40000 };

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
    options.buffer_bytes_total = 16 << 20;
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
    for (number = 0; number < MESSAGES; number++) {
        uint64_t came;
        OK(hamlyn_recv_mail(inbox, MINUTE, &message, &error));
        IS(message.length_bytes == sizeof came);
        memcpy(&came, message.data, sizeof came);
        IS(came == number);
    }
    OK(hamlyn_close_mailbox_receiver(inbox, &error));
    OK(hamlyn_close_mailbox_sender(outbox, &error));
    OK(hamlyn_close(here, &error));
    OK(hamlyn_close(there, &error));
    puts("passed");
    return 0;
}
