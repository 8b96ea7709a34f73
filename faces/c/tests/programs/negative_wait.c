/* What is left of a deadline may be negative. Only HAMLYN_FOREVER waits for ever; each call here would otherwise not return. */
#include "checks.h"

int main(void) {
    static const int64_t waits[] = {-2, -1000000, INT64_MIN};
    hamlyn_manager *manager, *other;
    hamlyn_datagram_receiver *inbox;
    hamlyn_stream_receiver *stream;
    hamlyn_datagram_sender *nobody;
    hamlyn_message message;

    OK(hamlyn_open("negative", &manager, &error));
    OK(hamlyn_open(NULL, &other, &error));
    OK(hamlyn_bind_datagram(manager, "in", 64, &inbox, &error));
    OK(hamlyn_bind_stream(manager, "log", NULL, &stream, &error));
    for (int at = 0; at < 3; at++) {
        IS(hamlyn_recv_datagram(inbox, waits[at], &message, &error) == HAMLYN_TIMED_OUT);
        IS(hamlyn_recv_record(stream, waits[at], &message, &error) == HAMLYN_TIMED_OUT);
        IS(hamlyn_connect_datagram(other, "nowhere/in", waits[at], &nobody, &error) != HAMLYN_OK);
        IS(hamlyn_wait(manager, waits[at], &error) <= HAMLYN_TIMED_OUT);
    }
    puts("passed");
    return 0;
}
