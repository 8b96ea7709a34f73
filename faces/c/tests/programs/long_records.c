/* Records of many pieces: a program sends one, and then only receives. `long_records serve` and `long_records ask`. */
#include "checks.h"

#include <stdlib.h>

enum { LENGTH = 100000, ROUNDS = 20 };

static hamlyn_manager *manager;
static hamlyn_stream_receiver *incoming;
static hamlyn_stream_sender *outgoing;
static unsigned char *data;

static void fill(int round) {
    for (int at = 0; at < LENGTH; at++) {
        data[at] = (unsigned char)(at * 7 + round);
    }
}

static void send_one(int round) {
    fill(round);
    OK(hamlyn_send_record(outgoing, data, LENGTH, HAMLYN_FOREVER, &error));
}

static void receive_one(int round) {
    hamlyn_message record;
    OK(hamlyn_recv_record(incoming, MINUTE, &record, &error));
    fill(round);
    IS(record.length_bytes == LENGTH && memcmp(record.data, data, LENGTH) == 0);
    OK(hamlyn_release_record(incoming, &error));
}

int main(int count, char **arguments) {
    IS(count == 2);
    who = arguments[1];
    const int serves = strcmp(who, "serve") == 0;
    const hamlyn_stream_options options = {.pieces = 2048, .piece_bytes = 64, .limit_bytes = 1 << 20};
    OK(hamlyn_open(who, &manager, &error));
    OK(hamlyn_bind_stream(manager, "in", &options, &incoming, &error));
    OK(hamlyn_connect_stream(manager, serves ? "ask/in" : "serve/in", MINUTE, &outgoing, &error));
    data = malloc(LENGTH);
    for (int round = 0; round < ROUNDS; round++) {
        if (serves) {
            receive_one(round);
            send_one(round + 1);
        } else {
            send_one(round);
            receive_one(round + 1);
        }
    }
    if (serves) {
        /* The other closes first, when it has all. */
        hamlyn_message record;
        GETS(HAMLYN_FINISHED, "", hamlyn_recv_record(incoming, MINUTE, &record, &error));
    } else {
        OK(hamlyn_finish_stream(outgoing, MINUTE, &error));
    }
    free(data);
    OK(hamlyn_close_stream_sender(outgoing, &error));
    OK(hamlyn_close_stream_receiver(incoming, &error));
    OK(hamlyn_close(manager, &error));
    puts("passed");
    return 0;
}
