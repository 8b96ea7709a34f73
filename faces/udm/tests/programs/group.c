/* A group by explicit names: processes that no launcher has started. */
#include "job.h"

static unsigned counted;

static void on_count(udm_t *u, void *argument) {
    (void)argument;
    GOOD(udm_dispose(u));
    counted++;
}

int main(int argc, char **argv) {
    udm_options options;
    uint32_t to;
    memset(&options, 0, sizeof options);
    TRUE(argc > 3);
    options.group.name = argv[1];
    options.group.me = (uint32_t)atoi(argv[2]);
    options.group.nodes = (uint32_t)argc - 3;
    options.group.addresses = (const char *const *)argv + 3;
    options.name = "counts";
    GOOD(udm_open(&udm, &options));
    GOOD(udm_self(udm, &me));
    GOOD(udm_nodes(udm, &nodes));
    EQUAL(me, options.group.me);
    EQUAL(nodes, options.group.nodes);
    GOOD(udm_on(udm, 3, on_count, NULL));
    GOOD(udm_barrier(udm, LONG));
    for (to = 0; to < nodes; to++) GOOD(udm_inject0(udm, to, 3));
    UNTIL(counted == nodes);
    return close_node();
}
