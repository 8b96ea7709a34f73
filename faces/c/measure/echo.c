/* What `hamlyn-lab bench --faces` times: records to and fro between two processes, each of which has a stream to the other. lab/counted/src/echo.rs
 * and ../../python/measure/echo.py do the same.
 *
 * echo lead|answer LENGTH COUNT NAMESPACE
 *
 * The one that leads prints, for each batch of COUNT round trips, how many nanoseconds one way took. */
#include <hamlyn.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCHES = 11 };

#define MINUTE (60 * INT64_C(1000000000))

static hamlyn_error error;

#define OK(call)                                                                                                  \
    do {                                                                                                          \
        if ((call) != HAMLYN_OK) {                                                                                \
            fprintf(stderr, "echo.c line %d: %s\n", __LINE__, error.text);                                        \
            exit(1);                                                                                              \
        }                                                                                                         \
    } while (0)

static hamlyn_stream_receiver *incoming;
static hamlyn_stream_sender *outgoing;
static unsigned char *bytes;
static size_t length;

static void send_one(void) { OK(hamlyn_send_record(outgoing, bytes, length, MINUTE, &error)); }

/* Looks at the record where it lies. Whether there was one more. */
static int receive_one(void) {
    hamlyn_message record;
    const hamlyn_status status = hamlyn_recv_record(incoming, MINUTE, &record, &error);
    if (status == HAMLYN_FINISHED) {
        return 0;
    }
    OK(status);
    const unsigned char *at = record.data;
    if (record.length_bytes != length || at[0] != 7 || at[length - 1] != 7) {
        fprintf(stderr, "echo.c: another record came\n");
        exit(1);
    }
    OK(hamlyn_release_record(incoming, &error));
    return 1;
}

static void lead(long count) {
    for (long turn = 0; turn < count; turn++) {
        send_one();
        if (!receive_one()) {
            fprintf(stderr, "echo.c: the stream ended\n");
            exit(1);
        }
    }
}

static void answer(void) {
    while (receive_one()) {
        send_one();
    }
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int arguments, char **argument) {
    if (arguments != 5) {
        fprintf(stderr, "echo lead|answer LENGTH COUNT NAMESPACE\n");
        return 2;
    }
    const int leads = strcmp(argument[1], "lead") == 0;
    length = strtoul(argument[2], NULL, 10);
    const long count = strtol(argument[3], NULL, 10);
    hamlyn_options options;
    hamlyn_manager *manager;
    OK(hamlyn_default_options(&options, &error));
    options.name = argument[1];
    options.namespace_name = argument[4];
    OK(hamlyn_open_with(&options, &manager, &error));
    OK(hamlyn_bind_stream(manager, "in", NULL, &incoming, &error));
    OK(hamlyn_connect_stream(manager, leads ? "answer/in" : "lead/in", MINUTE, &outgoing, &error));
    bytes = malloc(length);
    memset(bytes, 7, length);
    if (!leads) {
        answer();
    } else {
        lead(count);
        for (int batch = 0; batch < BATCHES; batch++) {
            const double begun_ns = now_ns();
            lead(count);
            printf("%.1f\n", (now_ns() - begun_ns) / (double)count / 2);
        }
        OK(hamlyn_finish_stream(outgoing, MINUTE, &error));
        /* The other closes when it has seen the end, and is waited for. */
        receive_one();
    }
    free(bytes);
    OK(hamlyn_close_stream_sender(outgoing, &error));
    OK(hamlyn_close_stream_receiver(incoming, &error));
    OK(hamlyn_close(manager, &error));
    return 0;
}
