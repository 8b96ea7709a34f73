/* Every function of crl.h, in a job: each node counts in shared regions, and looks at the
 * others'. */
#define CHECK_TEXT crl_error_text
#include "crl.h"
#include "check.h"

enum { ROUNDS = 200 };

/* A region of each node, by node. */
static rid_t *names;

static void share_names(unsigned bytes) {
    rid_t own = rgn_create(bytes);
    unsigned node;
    TRUE(own != crl_no_rid);
    names = (rid_t *)calloc(crl_num_nodes, sizeof *names);
    for (node = 0; node < crl_num_nodes; node++) {
        names[node] = own;
        if (node == crl_self_addr)
            GOOD(rgn_bcast_send(sizeof *names, &names[node]));
        else
            GOOD(rgn_bcast_recv(sizeof *names, &names[node]));
    }
}

static void count_together(void) {
    unsigned node, round, writer;
    for (node = 0; node < crl_num_nodes; node++) {
        uint64_t *counters = (uint64_t *)rgn_map(names[node]);
        TRUE(counters != NULL && (uintptr_t)counters % 8 == 0);
        TRUE(rgn_map(names[node]) == counters);
        TRUE(rgn_rid(counters) == names[node]);
        EQUAL(rgn_size(counters), 8 * (crl_num_nodes + 1));
        for (round = 0; round < ROUNDS; round++) {
            uint64_t sum = 0;
            GOOD(rgn_start_write(counters));
            counters[crl_self_addr]++;
            counters[crl_num_nodes]++;
            GOOD(rgn_end_write(counters));
            /* The last one is always the sum of the others. Reading nests. */
            GOOD(rgn_start_read(counters));
            GOOD(rgn_start_read(counters));
            for (writer = 0; writer < crl_num_nodes; writer++) sum += counters[writer];
            EQUAL(sum, counters[crl_num_nodes]);
            TRUE(counters[crl_self_addr] == round + 1);
            GOOD(rgn_end_read(counters));
            GOOD(rgn_end_read(counters));
            if (round % 50 == 0) GOOD(rgn_flush(counters));
        }
        GOOD(rgn_unmap(counters));
    }
    GOOD(rgn_barrier());
    for (node = 0; node < crl_num_nodes; node++) {
        uint64_t *counters = (uint64_t *)rgn_map(names[node]);
        GOOD(rgn_start_read(counters));
        for (writer = 0; writer < crl_num_nodes; writer++) EQUAL(counters[writer], ROUNDS);
        EQUAL(counters[crl_num_nodes], ROUNDS * crl_num_nodes);
        GOOD(rgn_end_read(counters));
        GOOD(rgn_unmap(counters));
        GOOD(rgn_unmap(counters));
        GIVES(rgn_unmap(counters), CRL_NOT_MAPPED, "rgn_map");
    }
}

/* Regions of other lengths, one of no bytes and one of a mebibyte among them. */
static void lengths(void) {
    static const unsigned all[] = {0, 1, 7, 8, 9, 4095, 4096, 4097, 100000, CRL_REGION_BYTES_MAX};
    unsigned at, byte;
    for (at = 0; at < sizeof all / sizeof *all; at++) {
        rid_t region = crl_no_rid;
        unsigned char *data;
        if (crl_self_addr == 0) {
            region = rgn_create(all[at]);
            GOOD(rgn_bcast_send(sizeof region, &region));
        } else {
            GOOD(rgn_bcast_recv(sizeof region, &region));
        }
        data = (unsigned char *)rgn_map(region);
        TRUE(data != NULL);
        EQUAL(rgn_size(data), all[at]);
        GOOD(crl_last_status());
        if (crl_self_addr == crl_num_nodes - 1) {
            GOOD(rgn_start_write(data));
            for (byte = 0; byte < all[at]; byte++) data[byte] = (unsigned char)(byte * 7 + at);
            GOOD(rgn_end_write(data));
        }
        GOOD(rgn_barrier());
        GOOD(rgn_start_read(data));
        for (byte = 0; byte < all[at]; byte++) EQUAL(data[byte], (unsigned char)(byte * 7 + at));
        GOOD(rgn_end_read(data));
        GOOD(rgn_unmap(data));
        GOOD(rgn_barrier());
        if (crl_self_addr == 0) GOOD(rgn_destroy(region));
    }
}

int main(int argc, char **argv) {
    double n;
    uint64_t sent = 0;
    unsigned me;
    EQUAL(argc, 2);
    GOOD(crl_init());
    GOOD(crl_init());
    n = crl_num_nodes;
    me = crl_self_addr;
    EQUAL(crl_num_nodes, atoi(argv[1]));
    share_names(8 * (crl_num_nodes + 1));
    count_together();
    lengths();
    TRUE(rgn_reduce_dadd(me + 0.5) == n * (n - 1) / 2 + n / 2);
    TRUE(rgn_reduce_dmin(10.0 - me) == 11.0 - n);
    TRUE(rgn_reduce_dmax(10.0 - me) == 10.0);
    GOOD(crl_messages_sent(&sent));
    TRUE(n == 1 ? sent == 0 : sent > 0);
    GOOD(crl_serve(0));
    printf("process %u of %u passed\n", me, (unsigned)n);
    fflush(stdout);
    GOOD(crl_finish(LONG));
    GIVES(rgn_barrier(), CRL_NOT_OPEN, "crl_init");
    EQUAL(crl_num_nodes, 0);
    free(names);
    return 0;
}
