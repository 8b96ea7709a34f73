/* The C Region Library (libhamlyn_udm): memory that the nodes of a program share, in software.
 * The names are those of CRL 1.0. docs/user-direct-messaging.md tells of it.
 *
 *   hamlyn run -n 4 PROGRAM
 *
 * A region is up to CRL_REGION_BYTES_MAX bytes. A node maps it, and reads or writes it between
 * the start and the end of an operation. The pointer of rgn_map is plain memory meanwhile; at
 * other times its bytes are of no use, and are not to be written. Whole operations are
 * sequentially consistent. A node answers others in its own calls only, so a long computation
 * calls crl_serve.
 *
 * Where CRL 1.0 printed a message and ended the program, a function here returns CRL_OK (0) or a
 * code. Those that return a value return crl_no_rid, null, 0 or NaN instead, and crl_last_status
 * has the code. crl_on_error(crl_print_and_exit) gives the old way.
 *
 * A pointer that rgn_map has not given is CRL_NOT_MAPPED, and is not followed. Other pointers
 * must be readable, or writable, as the function says. One thread of a process uses the library:
 * see udm.h. */
#ifndef CRL_H
#define CRL_H

#include "udm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The names in the library. */
#define crl_open hamlyn_crl_open
#define crl_finish hamlyn_crl_finish
#define crl_leave hamlyn_crl_leave
#define crl_serve hamlyn_crl_serve
#define crl_last_status hamlyn_crl_last_status
#define crl_error_text hamlyn_crl_error_text
#define crl_strerror hamlyn_crl_strerror
#define crl_on_error hamlyn_crl_on_error
#define crl_print_and_exit hamlyn_crl_print_and_exit
#define crl_messages_sent hamlyn_crl_messages_sent
#define rgn_create hamlyn_rgn_create
#define rgn_destroy hamlyn_rgn_destroy
#define rgn_map hamlyn_rgn_map
#define rgn_unmap hamlyn_rgn_unmap
#define rgn_rid hamlyn_rgn_rid
#define rgn_size hamlyn_rgn_size
#define rgn_flush hamlyn_rgn_flush
#define rgn_start_read hamlyn_rgn_start_read
#define rgn_end_read hamlyn_rgn_end_read
#define rgn_start_write hamlyn_rgn_start_write
#define rgn_end_write hamlyn_rgn_end_write
#define rgn_barrier hamlyn_rgn_barrier
#define rgn_bcast_send hamlyn_rgn_bcast_send
#define rgn_bcast_recv hamlyn_rgn_bcast_recv
#define rgn_reduce_dadd hamlyn_rgn_reduce_dadd
#define rgn_reduce_dmin hamlyn_rgn_reduce_dmin
#define rgn_reduce_dmax hamlyn_rgn_reduce_dmax

/* Codes; those below 32 are the numbers of udm.h. */
enum {
    CRL_OK = 0,
    CRL_NOT_OPEN = 1,      /* crl_init was not called */
    CRL_BAD_ARGUMENT = 2,
    CRL_RESOURCE = 3,      /* messages cannot be carried any more */
    CRL_IN_USE = 5,        /* that name is open here, or the group is one of UDM_THREAD */
    CRL_LOST = 7,          /* the region is lost with its home, or with the only copy */
    CRL_TOO_LONG = 10,     /* more than CRL_REGION_BYTES_MAX */
    CRL_WRONG_THREAD = 15,
    CRL_FORKED = 16,
    CRL_TIMED_OUT = 17,    /* no message of another node came for as long as patience_ms says */
    CRL_UNREACHABLE = 19,  /* a node could not be reached at the start */
    CRL_NO_REGION = 32,    /* it was never created, or was destroyed */
    CRL_MAPPED = 33,       /* a node has it mapped, so it is not destroyed */
    CRL_OPEN = 34,         /* an operation of this node is open */
    CRL_OPERATION_NOT_OPEN = 35,
    CRL_NOT_MAPPED = 36,   /* no region is mapped at this address */
    CRL_WRONG_LENGTH = 37, /* a broadcast has another length than its receiver says */
    CRL_NODE_LOST = 38,    /* a node is gone, and with it operations of all nodes together */
    CRL_MEMORY = 39
};

#define CRL_REGION_BYTES_MAX (1u << 20)
/* Nodes of a program, at most. */
#define CRL_NODES_MAX 256

/* The name of a region, which may travel and lie in regions. */
typedef uint64_t rid_t;
#define crl_no_rid UINT64_MAX

/* The start and the end. */

/* All zero, or null in place of them: the job of the launcher. */
typedef struct crl_options {
    udm_group group;
    const char *name;      /* of CRL among the end points of the group; null: "crl" */
    int64_t patience_ms;   /* a wait ends after so long without a message of any node; 0: never */
    size_t cached_regions; /* of which copies stay when they are unmapped; 0: 4,096 */
    int64_t open_ms;       /* to wait for each node; 0: as the launcher says, or a minute */
} crl_options;

/* Starts this node. Blocks until all nodes have, allocates, and connects to all. Once it is
 * started, the same call does nothing. */
int crl_open(const crl_options *options);
static inline int crl_init(void) { return crl_open(NULL); }
/* The last call of a program: unmaps all, waits until all nodes have made it, and then at most so
 * many milliseconds (below 0 for ever) until all messages have left. CRL_OPEN while an operation
 * is open; otherwise it is closed whatever it returns. */
int crl_finish(int64_t milliseconds);
/* The last call of a node that ends before others: its regions are lost. */
int crl_leave(int64_t milliseconds);
unsigned hamlyn_crl_num_nodes(void);
unsigned hamlyn_crl_self_addr(void);
/* The number of nodes, and that of this one: values, as in CRL 1.0. 0 and UINT_MAX before the
 * start. */
#define crl_num_nodes (hamlyn_crl_num_nodes())
#define crl_self_addr (hamlyn_crl_self_addr())
/* Answers other nodes, and waits for that: 0 does not wait. */
int crl_serve(int64_t milliseconds);

/* Errors. */

/* The code of the last call of this header in this thread. */
int crl_last_status(void);
/* The text of the last error of this thread, with the remedy: good until the next call of this. */
const char *crl_error_text(void);
const char *crl_strerror(int code);
/* Has a function called with each error of this thread. Null, as at first: none. It may make
 * calls, which tell it of their errors, too; the text stays as it is until it returns. */
void crl_on_error(void (*function)(int code, const char *text));
/* For crl_on_error: prints the text and ends the process with status 1. */
void crl_print_and_exit(int code, const char *text);
/* Messages that this node has sent. */
int crl_messages_sent(uint64_t *count);

/* Regions. */

/* A region of zeros, whose home is this node. Allocates. */
rid_t rgn_create(unsigned bytes);
/* From any node; CRL_MAPPED while a node has it mapped. Blocks until those that know it have
 * answered. */
int rgn_destroy(rid_t region);
/* Its address here, a multiple of 8: the same for one that is mapped already. Each mapping
 * counts. */
void *rgn_map(rid_t region);
/* CRL_OPEN if it is the last mapping, and an operation is open. The copy stays cached. */
int rgn_unmap(void *region);
rid_t rgn_rid(void *region);
unsigned rgn_size(void *region);
/* Gives this node's copy up, and sends it home if it is the only one. CRL_OPEN in an operation. */
int rgn_flush(void *region);

/* Operations. Several readers may be active, on one node and on several; a writer is alone. They
 * block until they are granted. CRL_OPEN if this node itself is in the way. */
int rgn_start_read(void *region);
int rgn_end_read(void *region);
int rgn_start_write(void *region);
int rgn_end_write(void *region);

/* Operations of all nodes: each is called by all. */

int rgn_barrier(void);
/* Sends bytes to all others, which receive them as their next broadcast, of the same length. */
int rgn_bcast_send(int length_bytes, const void *data);
int rgn_bcast_recv(int length_bytes, void *data);
/* The sum in the order of nodes, the least, the greatest: the same bits on each node. */
double rgn_reduce_dadd(double value);
double rgn_reduce_dmin(double value);
double rgn_reduce_dmax(double value);

#ifdef __cplusplus
}
#endif

#endif
