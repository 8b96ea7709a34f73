/* A key-value table in the memory of its owner that many writers fill by tagged writes, without a lock or a call of the kernel.
 * Each writer is told rows of its own; the tag of a write says which row is new. Writers must not disturb each other: they are
 * trusted with the whole table. For others there are slots in paranoid mode (docs/security.md).
 *
 *     table own 3              # prints the table when three pairs have come
 *     table put tea=2 milk=1
 *     table put salt=7
 */
#include <hamlyn.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRITERS = 8, ROWS_EACH = 16, ROWS = WRITERS * ROWS_EACH };

/* Each filled up with zeros. */
struct row {
    char key[24], value[40];
};

static const int64_t WAIT_NS = 10000000000;

static int fail(const hamlyn_error *error) {
    fprintf(stderr, "%s\n", error->text);
    return 1;
}

static int by_key(const void *left, const void *right) {
    return strncmp(((const struct row *)left)->key, ((const struct row *)right)->key, sizeof((const struct row *)left)->key);
}

static int own(int pairs) {
    hamlyn_error error;
    hamlyn_manager *owner;
    hamlyn_tag_receiver *table;
    if (hamlyn_open("table", &owner, &error)
        || hamlyn_bind_tagged_write(owner, "pairs", ROWS * sizeof(struct row), ROWS, &table, &error)) {
        return fail(&error);
    }
    for (int writer = 0; writer < WRITERS; writer++) {
        char first_row[16];
        int length = snprintf(first_row, sizeof first_row, "%d", writer * ROWS_EACH);
        /* Offered once: no two writers get the same rows. */
        if (hamlyn_offer(owner, "rows", HAMLYN_OFFER_ONCE, first_row, (size_t)length, &error)) {
            return fail(&error);
        }
    }

    static struct row newest[ROWS];
    size_t keys = 0;
    for (; pairs > 0; pairs--) {
        uint64_t tag;
        struct row row;
        if (hamlyn_recv_tag(table, HAMLYN_FOREVER, &tag, &error)) {
            return fail(&error);
        }
        /* Another may send any tag. */
        if (tag >= ROWS) {
            fprintf(stderr, "tag %" PRIu64 " names no row\n", tag);
            return 1;
        }
        if (hamlyn_read_area(table, tag * sizeof row, &row, sizeof row, &error)) {
            return fail(&error);
        }
        size_t at = 0;
        while (at < keys && by_key(&newest[at], &row) != 0) {
            at++;
        }
        if (at == ROWS) {
            fprintf(stderr, "there are more keys than rows\n");
            return 1;
        }
        newest[at] = row;
        keys += at == keys;
    }
    qsort(newest, keys, sizeof newest[0], by_key);
    for (size_t at = 0; at < keys; at++) {
        printf("%.24s=%.40s\n", newest[at].key, newest[at].value);
    }
    hamlyn_close_tag_receiver(table, NULL);
    hamlyn_close(owner, NULL);
    return 0;
}

static int put(char **pairs, int count) {
    hamlyn_error error;
    hamlyn_manager *me;
    hamlyn_tag_sender *table;
    char first_row[HAMLYN_OFFER_BYTES_MAX + 1];
    size_t length;
    if (count > ROWS_EACH) {
        fprintf(stderr, "a writer has %d rows\n", ROWS_EACH);
        return 1;
    }
    if (hamlyn_open(NULL, &me, &error)
        || hamlyn_ask(me, "table", "rows", WAIT_NS, first_row, HAMLYN_OFFER_BYTES_MAX, &length, &error)
        || hamlyn_connect_tagged_write(me, "table/pairs", WAIT_NS, &table, &error)) {
        return fail(&error);
    }
    first_row[length] = '\0';
    const uint64_t first = strtoull(first_row, NULL, 10);
    for (int at = 0; at < count; at++) {
        struct row row = {{0}, {0}};
        const char *equals = strchr(pairs[at], '=');
        if (equals == NULL || (size_t)(equals - pairs[at]) > sizeof row.key || strlen(equals + 1) > sizeof row.value) {
            fprintf(stderr, "%s: a pair is KEY=VALUE, with a key of up to 24 bytes and a value of up to 40\n", pairs[at]);
            return 1;
        }
        memcpy(row.key, pairs[at], (size_t)(equals - pairs[at]));
        memcpy(row.value, equals + 1, strlen(equals + 1));
        const uint64_t number = first + (uint64_t)at;
        if (hamlyn_send_tag(table, number * sizeof row, &row, sizeof row, number, WAIT_NS, &error)) {
            return fail(&error);
        }
    }
    /* All rows are in their place; or the owner has what it wanted, and is gone. */
    hamlyn_status status = hamlyn_fence_tags(table, WAIT_NS, &error);
    if (status != HAMLYN_OK && status != HAMLYN_PEER_LOST) {
        return fail(&error);
    }
    hamlyn_close_tag_sender(table, NULL);
    hamlyn_close(me, NULL);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "own") == 0) {
        return own(atoi(argv[2]));
    }
    if (argc >= 2 && strcmp(argv[1], "put") == 0) {
        return put(argv + 2, argc - 2);
    }
    fprintf(stderr, "usage: table own PAIRS | table put KEY=VALUE...\n");
    return 2;
}
