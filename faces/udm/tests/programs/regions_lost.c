/* A node that ends in the middle: its regions are lost by name, others go on. Two nodes. */
#define CHECK_TEXT crl_error_text
#include "crl.h"
#include "check.h"

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    crl_options options;
    memset(&options, 0, sizeof options);
    int is_impatient = !strcmp(what, "patience");
    /* Of node 0 alone: the other one waits for that. */
    if (is_impatient && !strcmp(getenv("HAMLYN_RANK"), "0")) options.patience_ms = 2000;
    GOOD(crl_open(&options));
    EQUAL(crl_num_nodes, 2);
    unsigned me = crl_self_addr;
    rid_t own = rgn_create(8), other = own;
    if (me == 1) GOOD(rgn_bcast_send(sizeof own, &own));
    else GOOD(rgn_bcast_recv(sizeof other, &other));
    if (!strcmp(what, "length")) {
        char bytes[8];
        if (me == 1) GOOD(rgn_bcast_send(8, bytes));
        else GIVES(rgn_bcast_recv(7, bytes), CRL_WRONG_LENGTH, "agree");
        printf("process %u of 2 passed\n", me);
        fflush(stdout);
        GOOD(crl_finish(LONG));
        return 0;
    }
    int64_t *theirs = (int64_t *)rgn_map(other), *mine = (int64_t *)rgn_map(own);
    TRUE(theirs && mine);
    if (is_impatient && me == 1) GOOD(rgn_start_write(mine));
    GOOD(rgn_barrier());
    if (me == 1) {
        if (is_impatient) {
            /* Until the other one has given up. */
            GOOD(rgn_barrier());
            GOOD(rgn_end_write(mine));
        }
        printf("process 1 of 2 passed\n");
        fflush(stdout);
        GOOD(crl_leave(LONG));
        return 0;
    }
    if (is_impatient) {
        GIVES(rgn_start_write(theirs), CRL_TIMED_OUT, "in time");
        GOOD(rgn_barrier());
    } else {
        int code = CRL_OK;
        while (code == CRL_OK) {
            code = rgn_start_write(theirs);
            if (code == CRL_OK) GOOD(rgn_end_write(theirs));
        }
        EQUAL(code, CRL_LOST);
        TRUE(strstr(crl_error_text(), "lost with node 1") != NULL);
        TRUE(rgn_map(other + 1) == NULL);
        EQUAL(crl_last_status(), CRL_LOST);
        /* Others go on; operations of all nodes do not. */
        GOOD(rgn_start_write(mine));
        *mine = 5;
        GOOD(rgn_end_write(mine));
        GIVES(rgn_barrier(), CRL_NODE_LOST, "node 1");
        TRUE(rgn_reduce_dadd(1) != rgn_reduce_dadd(1));
        EQUAL(crl_last_status(), CRL_NODE_LOST);
    }
    printf("process 0 of 2 passed\n");
    fflush(stdout);
    GOOD(crl_leave(LONG));
    return 0;
}
