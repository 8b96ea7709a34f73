/* A node of a job: opened with a barrier, closed after a barrier and a flush. */
#ifndef JOB_H
#define JOB_H

#include "udm.h"
#include "check.h"

static udm_t *udm;
static uint32_t me, nodes;

/* Bytes of the area of a node, for parts of four nodes. */
enum { PART_BYTES = 50000, AREA_BYTES = 4 * PART_BYTES };

static inline void open_node(int interrupts) {
    udm_options options;
    memset(&options, 0, sizeof options);
    options.interrupts = interrupts;
    options.area_bytes = AREA_BYTES;
    GOOD(udm_open(&udm, &options));
    GOOD(udm_self(udm, &me));
    GOOD(udm_nodes(udm, &nodes));
}

/* Waits until the condition holds, and runs handlers. */
#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        int vain_ = 0;                                                                             \
        while (!(condition)) {                                                                     \
            size_t ran_ = 0;                                                                       \
            GOOD(udm_wait(udm, 1000, &ran_));                                                      \
            vain_ = ran_ ? 0 : vain_ + 1;                                                          \
            if (vain_ > 60) {                                                                      \
                fprintf(stderr, "%s:%d: not in a minute: %s\n", __FILE__, __LINE__, #condition);   \
                exit(1);                                                                           \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static inline int close_node(void) {
    GOOD(udm_barrier(udm, LONG));
    GOOD(udm_flush(udm, LONG));
    printf("process %u of %u passed\n", me, nodes);
    GOOD(udm_close(udm));
    GIVES(udm_poll(udm, 1, NULL), UDM_NOT_OPEN, "closed");
    return 0;
}

#endif
