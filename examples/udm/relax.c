/* Shared memory in software (crl.h): a rod whose ends are held at 0 and 100 degrees. Each process
 * has a piece of it in a region, reads the edges of its neighbours, and computes until nothing
 * changes any more.
 *
 *   cc relax.c -o relax -lhamlyn_udm
 *   hamlyn run -n 4 ./relax 60 */
#include <crl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1000 };

/* The region of each process, by number, and where it is mapped. */
static double *pieces[CRL_NODES_MAX];

/* An edge of a neighbour's piece. */
static double edge(unsigned node, unsigned at) {
    double value;
    rgn_start_read(pieces[node]);
    value = pieces[node][at];
    rgn_end_read(pieces[node]);
    return value;
}

int main(int argc, char **argv) {
    double next[MOST], change, by;
    unsigned node, at, length, rounds = 0;
    if (argc != 2 || (length = (unsigned)atoi(argv[1])) < 1 || length > MOST) {
        fprintf(stderr, "usage: hamlyn run -n PROCESSES relax LENGTH (of a piece, 1 to %d)\n", MOST);
        return 2;
    }
    /* The way of CRL 1.0: what fails says so, and ends the program. */
    crl_on_error(crl_print_and_exit);
    crl_init();
    for (node = 0; node < crl_num_nodes; node++) {
        rid_t region;
        if (node == crl_self_addr) {
            region = rgn_create(length * sizeof(double));
            rgn_bcast_send(sizeof region, &region);
        } else {
            rgn_bcast_recv(sizeof region, &region);
        }
        pieces[node] = (double *)rgn_map(region);
    }
    do {
        unsigned me = crl_self_addr, last = crl_num_nodes - 1;
        double left = me == 0 ? 0 : edge(me - 1, length - 1), right = me == last ? 100 : edge(me + 1, 0);
        /* All have read before anybody writes. */
        rgn_barrier();
        change = 0;
        rgn_start_write(pieces[me]);
        for (at = 0; at < length; at++) {
            double before = at == 0 ? left : pieces[me][at - 1], after = at == length - 1 ? right : pieces[me][at + 1];
            next[at] = (before + after) / 2;
            by = next[at] < pieces[me][at] ? pieces[me][at] - next[at] : next[at] - pieces[me][at];
            if (by > change) change = by;
        }
        memcpy(pieces[me], next, length * sizeof(double));
        rgn_end_write(pieces[me]);
        /* And all have written before anybody reads. */
        change = rgn_reduce_dmax(change);
        rounds++;
    } while (change > 1e-6);
    if (crl_self_addr == 0) {
        printf("%u rounds\n", rounds);
        for (node = 0; node < crl_num_nodes; node++) printf("piece %u ends at %.2f\n", node, edge(node, length - 1));
    }
    crl_finish(20000);
    return 0;
}
