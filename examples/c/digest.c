/* A file digested in parallel: each worker is told a part of the file, and sends its SHA-256. A group makes one message of all
 * digests, so the owner is woken once, whichever worker is the last.
 *
 *     digest gather FILE 3     # prints the SHA-256 of the digests of three parts
 *     digest work              # three of them, at any time, before or after
 */
#include "sha256.h"

#include <hamlyn.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { WORKERS_MAX = 1000, DIGEST_BYTES = 32, RESULT_BYTES = 8 + DIGEST_BYTES, BUFFER_BYTES = 65536 };

static const int64_t WAIT_NS = 10000000000;
/* All workers together may take that long. */
static const int64_t WORK_NS = 60000000000;

static int fail(const hamlyn_error *error) {
    fprintf(stderr, "%s\n", error->text);
    return 1;
}

static int fail_with(const char *object, const char *what) {
    fprintf(stderr, "%s: %s\n", object, what);
    return 1;
}

static int gather(const char *file, int workers) {
    struct stat state;
    char *path = realpath(file, NULL);
    if (path == NULL || stat(path, &state) != 0) {
        perror(file);
        return 1;
    }
    if (workers < 1 || workers > WORKERS_MAX) {
        return fail_with("digest", "there must be 1 to 1000 workers");
    }
    const uint64_t file_bytes = (uint64_t)state.st_size, part_bytes = (file_bytes + (uint64_t)workers - 1) / (uint64_t)workers;

    hamlyn_error error;
    hamlyn_manager *owner;
    hamlyn_group_receiver *digests;
    uint64_t lengths[WORKERS_MAX];
    for (int i = 0; i < workers; i++) {
        lengths[i] = RESULT_BYTES;
    }
    if (hamlyn_open("digester", &owner, &error)
        || hamlyn_bind_group(owner, "digests", (uint32_t)workers * RESULT_BYTES, &digests, &error)
        || hamlyn_begin_group(digests, lengths, (size_t)workers, &error)) {
        return fail(&error);
    }
    for (int number = 0; number < workers; number++) {
        char part[HAMLYN_OFFER_BYTES_MAX];
        uint64_t begin = (uint64_t)number * part_bytes, end;
        begin = begin < file_bytes ? begin : file_bytes;
        end = begin + part_bytes < file_bytes ? begin + part_bytes : file_bytes;
        int length = snprintf(part, sizeof part, "%d %" PRIu64 " %" PRIu64 " %s", number, begin, end - begin, path);
        if (length >= (int)sizeof part) {
            return fail_with(path, "the name is too long to be offered");
        }
        /* Offered once: no two workers get the same part. */
        if (hamlyn_offer(owner, "part", HAMLYN_OFFER_ONCE, part, (size_t)length, &error)) {
            return fail(&error);
        }
    }
    free(path);

    hamlyn_message results;
    hamlyn_status status = hamlyn_recv_group(digests, WORK_NS, &results, &error);
    if (status == HAMLYN_TIMED_OUT) {
        return fail_with("digest", "a worker is missing, or has not finished in a minute");
    }
    if (status != HAMLYN_OK) {
        return fail(&error);
    }
    const uint8_t *by_number[WORKERS_MAX] = {NULL};
    for (int i = 0; i < workers; i++) {
        const uint8_t *result = (const uint8_t *)results.data + i * RESULT_BYTES;
        uint64_t number = 0;
        for (int byte = 7; byte >= 0; byte--) {
            number = number << 8 | result[byte];
        }
        if (number >= (uint64_t)workers || by_number[number] != NULL) {
            return fail_with("digest", "a part came twice, or there is none of its number");
        }
        by_number[number] = result + 8;
    }
    sha256 whole;
    uint8_t digest[DIGEST_BYTES];
    sha256_begin(&whole);
    for (int i = 0; i < workers; i++) {
        sha256_take(&whole, by_number[i], DIGEST_BYTES);
    }
    sha256_end(&whole, digest);
    for (int i = 0; i < DIGEST_BYTES; i++) {
        printf("%02x", digest[i]);
    }
    printf("\n");
    hamlyn_close_group_receiver(digests, NULL);
    hamlyn_close(owner, NULL);
    return 0;
}

/* The digest of `length` bytes of the file. */
static int digest_part(const char *path, uint64_t begin, uint64_t length, uint8_t digest[DIGEST_BYTES]) {
    static uint8_t buffer[BUFFER_BYTES];
    sha256 part;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseeko(file, (off_t)begin, SEEK_SET) != 0) {
        perror(path);
        return 1;
    }
    sha256_begin(&part);
    while (length > 0) {
        size_t count = fread(buffer, 1, length < sizeof buffer ? (size_t)length : sizeof buffer, file);
        if (count == 0) {
            return fail_with(path, "the file has become shorter, or cannot be read");
        }
        sha256_take(&part, buffer, count);
        length -= count;
    }
    sha256_end(&part, digest);
    fclose(file);
    return 0;
}

static int work(void) {
    hamlyn_error error;
    hamlyn_manager *me;
    hamlyn_group_sender *digests;
    char part[HAMLYN_OFFER_BYTES_MAX + 1];
    size_t length;
    if (hamlyn_open(NULL, &me, &error)
        || hamlyn_ask(me, "digester", "part", WAIT_NS, part, HAMLYN_OFFER_BYTES_MAX, &length, &error)) {
        return fail(&error);
    }
    part[length] = '\0';
    uint64_t number, begin, part_bytes;
    int path = 0;
    if (sscanf(part, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %n", &number, &begin, &part_bytes, &path) != 3 || path == 0) {
        return fail_with(part, "this is no part of a file");
    }
    uint8_t result[RESULT_BYTES];
    for (int byte = 0; byte < 8; byte++) {
        result[byte] = (uint8_t)(number >> 8 * byte);
    }
    if (digest_part(part + path, begin, part_bytes, result + 8)) {
        return 1;
    }
    /* Once it is handed over, it is there whether this program ends or not. */
    if (hamlyn_connect_group(me, "digester/digests", WAIT_NS, &digests, &error)
        || hamlyn_send_part(digests, 0, result, sizeof result, 1, WAIT_NS, &error) || hamlyn_flush(me, WAIT_NS, &error)) {
        return fail(&error);
    }
    hamlyn_close_group_sender(digests, NULL);
    hamlyn_close(me, NULL);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "gather") == 0) {
        return gather(argv[2], atoi(argv[3]));
    }
    if (argc == 2 && strcmp(argv[1], "work") == 0) {
        return work();
    }
    fprintf(stderr, "usage: digest gather FILE WORKERS | digest work\n");
    return 2;
}
