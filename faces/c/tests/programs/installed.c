/* What a program does that finds an installed library: it sends itself a message. */
#include <hamlyn.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    const int64_t minute = 60 * INT64_C(1000000000);
    hamlyn_error error;
    hamlyn_manager *manager;
    hamlyn_datagram_receiver *inbox;
    hamlyn_datagram_sender *outbox;
    hamlyn_message message;
    if (hamlyn_open("installed", &manager, &error) || hamlyn_bind_datagram(manager, "inbox", 64, &inbox, &error)
        || hamlyn_connect_datagram(manager, "installed/inbox", minute, &outbox, &error)
        || hamlyn_send_datagram(outbox, "it works", 8, minute, &error)
        || hamlyn_recv_datagram(inbox, minute, &message, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    printf("%.*s\n", (int)message.length_bytes, (const char *)message.data);
    hamlyn_release_datagram(inbox, NULL);
    hamlyn_close_datagram_sender(outbox, NULL);
    hamlyn_close_datagram_receiver(inbox, NULL);
    hamlyn_close(manager, NULL);
    return 0;
}
