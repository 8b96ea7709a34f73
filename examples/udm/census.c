/* User Direct Messaging between the processes of a job (udm.h): each process throws dice and
 * tells the process that counts that sum. A count is kept by handlers, and read in a section. It
 * is examples/src/bin/census.rs in C, and gives the same counts.
 *
 *   cc census.c -o census -lhamlyn_udm
 *   hamlyn run -n 4 ./census 10000 */
#include <stdio.h>
#include <stdlib.h>
#include <udm.h>

enum { SUMS = 13, PATIENCE_MS = 20000 };
/* THROW: its word is the sum. COUNT, at process 0: its words are the sum and the count. */
enum { THROW = 0, COUNT = 1 };

static void must(udm_status status, const char *what) {
    if (status == UDM_OK) return;
    fprintf(stderr, "%s: %s\n", what, udm_error_text());
    exit(1);
}

static void on_throw(udm_t *udm, void *counts) {
    udm_message message;
    must(udm_extract(udm, &message), "a throw");
    /* Others may send anything. */
    if (udm_word(&message, 0) < SUMS) ((uint32_t *)counts)[udm_word(&message, 0)]++;
}

static void on_count(udm_t *udm, void *counts) {
    udm_message message;
    must(udm_extract(udm, &message), "a count");
    if (udm_word(&message, 0) < SUMS) ((uint32_t *)counts)[udm_word(&message, 0)] = udm_word(&message, 1);
}

/* A number of 1 to 6. */
static uint32_t die(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % 6 + 1;
}

int main(int argc, char **argv) {
    uint32_t counts[SUMS] = {0}, me, nodes, sum;
    unsigned long throws;
    uint64_t dice;
    udm_t *udm;
    if (argc != 2) {
        fprintf(stderr, "usage: hamlyn run -n PROCESSES census THROWS\n");
        return 2;
    }
    must(udm_open(&udm, NULL), "open");
    must(udm_self(udm, &me), "self");
    must(udm_nodes(udm, &nodes), "nodes");
    must(udm_on(udm, THROW, on_throw, counts), "handler");
    must(udm_on(udm, COUNT, on_count, counts), "handler");
    dice = me + 1;
    for (throws = strtoul(argv[1], NULL, 10); throws > 0; throws--) {
        sum = die(&dice);
        sum += die(&dice);
        must(udm_inject1(udm, sum % nodes, THROW, sum), "throw");
    }
    /* All throws have been counted at its end, on one host. */
    must(udm_barrier(udm, PATIENCE_MS), "barrier");
    for (sum = 2; sum < SUMS; sum++) {
        uint32_t count;
        if (sum % nodes != me) continue;
        must(udm_beginatom(udm, UDM_INTERRUPT_DISABLE), "section");
        count = counts[sum];
        must(udm_endatom(udm, UDM_INTERRUPT_DISABLE), "section");
        must(udm_inject2(udm, 0, COUNT, sum, count), "count");
    }
    must(udm_barrier(udm, PATIENCE_MS), "barrier");
    if (me == 0)
        for (sum = 2; sum < SUMS; sum++) printf("%2u: %u\n", sum, counts[sum]);
    must(udm_flush(udm, PATIENCE_MS), "flush");
    must(udm_close(udm), "close");
    return 0;
}
