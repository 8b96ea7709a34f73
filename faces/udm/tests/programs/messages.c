/* Messages of every number of words and of many lengths, from each node to each, by every form. */
#include "job.h"

enum { WORDS = 1, BYTES = 2, BULK = 3, NONE = 4000 };

static unsigned long sum, expected, messages, bytes_seen, bulks;
static const size_t bulk_lengths[] = {0, 1, 4096, 32768, 32769, PART_BYTES};

static uint32_t value(uint32_t from, uint32_t to, size_t count, size_t at) {
    return from * 1000003u + to * 10007u + (uint32_t)count * 101u + (uint32_t)at;
}

static void on_words(udm_t *u, void *argument) {
    udm_message message, again;
    size_t at;
    EQUAL(u == udm, 1);
    TRUE(argument == &sum);
    GOOD(udm_peek(u, &again));
    GOOD(udm_extract(u, &message));
    EQUAL(message.handler, WORDS);
    EQUAL(message.bulk_bytes, 0);
    EQUAL(message.length_bytes, message.words * 4u);
    EQUAL(again.words, message.words);
    for (at = 0; at < message.words; at++) {
        EQUAL(udm_word(&message, at), value(message.source, me, message.words, at));
        sum += udm_word(&message, at);
    }
    EQUAL(udm_word(&message, at), 0);
    messages++;
}

static void on_bytes(udm_t *u, void *argument) {
    udm_message message;
    const unsigned char *data;
    size_t at;
    (void)argument;
    GOOD(udm_extract(u, &message));
    data = (const unsigned char *)message.data;
    EQUAL(message.words, message.length_bytes / 4);
    for (at = 0; at < message.length_bytes; at++)
        EQUAL(data[at], (unsigned char)(message.source + message.length_bytes + at));
    bytes_seen += message.length_bytes;
}

/* Data of a node lie in its part of the area, and end where that ends. */
static void on_bulk(udm_t *u, void *argument) {
    udm_message message;
    void *area;
    const unsigned char *data;
    size_t at, area_bytes;
    (void)argument;
    GOOD(udm_extract(u, &message));
    GOOD(udm_bulk_area(u, &area, &area_bytes));
    EQUAL(area_bytes, AREA_BYTES);
    EQUAL(message.words, 2);
    EQUAL(message.bulk_bytes, bulk_lengths[udm_word(&message, 0)]);
    EQUAL(message.bulk_at + message.bulk_bytes, (message.source + 1) * PART_BYTES);
    data = (const unsigned char *)area + message.bulk_at;
    for (at = 0; at < message.bulk_bytes; at++)
        EQUAL(data[at], (unsigned char)(message.source * 7 + message.bulk_bytes + at + (at >> 8)));
    bulks++;
}

static void inject_bulk(uint32_t to, uint32_t number) {
    static unsigned char data[PART_BYTES];
    const size_t length = bulk_lengths[number];
    const uint32_t w[] = {number, 0};
    size_t at;
    for (at = 0; at < length; at++) data[at] = (unsigned char)(me * 7 + length + at + (at >> 8));
    GOOD(udm_inject_bulk(udm, to, BULK, 2, w, data, length, (me + 1) * PART_BYTES - length));
}

static udm_status by_form(uint32_t to, size_t n, const uint32_t *w, int waits) {
#define FORM(count, ...) case count: return waits ? udm_inject##count(udm, to, WORDS, __VA_ARGS__) : udm_injectc##count(udm, to, WORDS, __VA_ARGS__);
    switch (n) {
    case 0: return waits ? udm_inject0(udm, to, WORDS) : udm_injectc0(udm, to, WORDS);
        FORM(1, w[0])
        FORM(2, w[0], w[1])
        FORM(3, w[0], w[1], w[2])
        FORM(4, w[0], w[1], w[2], w[3])
        FORM(5, w[0], w[1], w[2], w[3], w[4])
        FORM(6, w[0], w[1], w[2], w[3], w[4], w[5])
        FORM(7, w[0], w[1], w[2], w[3], w[4], w[5], w[6])
        FORM(8, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7])
        FORM(9, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8])
        FORM(10, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9])
        FORM(11, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10])
        FORM(12, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11])
        FORM(13, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12])
    default:
        return waits ? udm_inject14(udm, to, WORDS, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13])
                     : udm_injectc14(udm, to, WORDS, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13]);
    }
}

static void inject_words(uint32_t to, size_t n) {
    uint32_t w[UDM_WORDS_MAX];
    size_t at;
    int code;
    for (at = 0; at < n; at++) w[at] = value(me, to, n, at);
    GOOD(udm_inject(udm, to, WORDS, n, w));
    GOOD(by_form(to, n, w, 1));
    while ((code = by_form(to, n, w, 0)) == UDM_WOULD_BLOCK) GOOD(udm_poll(udm, 10, NULL));
    GOOD(code);
    while ((code = udm_injectc(udm, to, WORDS, n, w)) == UDM_WOULD_BLOCK) GOOD(udm_poll(udm, 10, NULL));
    GOOD(code);
}

static void inject_bytes(uint32_t to, size_t length) {
    static unsigned char data[4096];
    size_t at;
    int code;
    for (at = 0; at < length; at++) data[at] = (unsigned char)(me + length + at);
    GOOD(udm_inject_bytes(udm, to, BYTES, data, length));
    while ((code = udm_injectc_bytes(udm, to, BYTES, data, length)) == UDM_WOULD_BLOCK)
        GOOD(udm_poll(udm, 10, NULL));
    GOOD(code);
}

int main(int argc, char **argv) {
    static const size_t lengths[] = {0, 1, 3, 4, 55, 56, 57, 63, 64, 65, 1000, 1024, 1025, 4000, 4096};
    uint32_t to;
    size_t n, most, lengths_sum = 0;
    udm_statistics statistics;
    open_node(UDM_SAFEPOINT);
    TRUE(argc > 1);
    EQUAL(nodes, atoi(argv[1]));
    GOOD(udm_on(udm, WORDS, on_words, &sum));
    GOOD(udm_on(udm, BYTES, on_bytes, NULL));
    GOOD(udm_on(udm, BULK, on_bulk, NULL));
    TRUE(nodes <= 4);
    GOOD(udm_barrier(udm, LONG));
    for (to = 0; to < nodes; to++) {
        GOOD(udm_bytes_max(udm, to, &most));
        /* Between hosts as many as a packet has. */
        if (argc == 2 || to == me) EQUAL(most, 4096);
        else TRUE(most > 1100 && most < 4096);
        for (n = 0; n <= UDM_WORDS_MAX; n++) inject_words(to, n);
        for (n = 0; n < sizeof lengths / sizeof *lengths; n++) {
            if (lengths[n] <= most) inject_bytes(to, lengths[n]);
            else GIVES(udm_inject_bytes(udm, to, BYTES, lengths, lengths[n]), UDM_TOO_LONG, "at most");
        }
        for (n = 0; n < sizeof bulk_lengths / sizeof *bulk_lengths; n++) inject_bulk(to, (uint32_t)n);
        /* It has no handler: it is disposed of, and counted. */
        GOOD(udm_inject0(udm, to, NONE));
    }
    /* Each node has the same links. */
    for (to = 0; to < nodes; to++) {
        GOOD(udm_bytes_max(udm, to, &most));
        for (n = 0; n < sizeof lengths / sizeof *lengths; n++)
            if (lengths[n] <= most) lengths_sum += 2 * lengths[n];
    }
    UNTIL(messages == 4 * 15 * nodes && bytes_seen == lengths_sum && bulks == 6 * nodes);
    for (to = 0; to < nodes; to++)
        for (n = 0; n <= UDM_WORDS_MAX; n++) {
            size_t at;
            for (at = 0; at < n; at++) expected += 4ul * value(to, me, n, at);
        }
    EQUAL(sum, expected);
    GOOD(udm_get_statistics(udm, &statistics));
    while (statistics.unhandled < nodes) {
        GOOD(udm_wait(udm, LONG, NULL));
        GOOD(udm_get_statistics(udm, &statistics));
    }
    EQUAL(statistics.unhandled, nodes);
    TRUE(statistics.sent >= (60 + 20 + 1) * nodes);
    EQUAL(statistics.strangers + statistics.wrong, 0);
    return close_node();
}
