/* The functions of the library libhamlyn_am, over which am.h, am_spmd.h and am1996.h are inline
 * functions.
 *
 * Programs include one of those. Languages without C's headers call these.
 *
 * All pointers: null is refused where it is not allowed; any other pointer must be readable, or
 * writable, as the function says, for as many bytes as it says, during the call. Handles and
 * tokens are numbers: old ones and foreign ones are refused. A handler must have the type that
 * am.h says for the messages that it gets, and must neither throw an exception nor jump out of
 * itself (longjmp): that ends the process. All functions are called by the thread that called
 * hamlyn_am_init; in others they return AM_ERR_RESOURCE. After fork, the child has nothing of its
 * parent's: all functions return AM_ERR_NOT_INIT until it calls hamlyn_am_init. */
#ifndef HAMLYN_AM_H
#define HAMLYN_AM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The headers that a program may be compiled with. */
#define HAMLYN_AM_TODAY 2
#define HAMLYN_AM_1996 1996

typedef struct hamlyn_am_bundle *hamlyn_am_bundle_t;
typedef struct hamlyn_am_endpoint *hamlyn_am_endpoint_t;
/* A name, to be copied and sent as it is. */
typedef struct hamlyn_am_name {
    uint64_t words[8];
} hamlyn_am_name_t;
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
typedef void (*hamlyn_am_handler_t)(void);
#else
/* Functions of any arguments, without a cast. */
typedef void (*hamlyn_am_handler_t)();
#endif

/* A message that came back. */
typedef struct hamlyn_am_returned {
    int opcode;            /* AM_REQUEST_M and its like */
    int status;            /* EBADTAG and its like */
    int reason;            /* of a reply that was rejected, the reason; otherwise as the status */
    int dest;              /* the translation; -1 of a reply, and if it was unmapped */
    int handler;           /* that it was for */
    const uint32_t *args;  /* good while the handler runs, as the data */
    int numargs;
    const void *data;
    size_t nbytes;
    uintptr_t offset;      /* in the remote segment, of bulk messages and gets */
} hamlyn_am_returned_t;

/* Counts of the process since hamlyn_am_init; none falls. */
typedef struct hamlyn_am_statistics {
    uint64_t requests_sent;     /* accepted here; a long bulk message is several */
    uint64_t requests_taken;    /* whose handler ran here, or that the library answered */
    uint64_t replies_sent;      /* by handlers */
    uint64_t replies_taken;
    uint64_t empty_replies;     /* for requests whose handler sent none */
    uint64_t sent_again;        /* refused for want of room, and sent again */
    uint64_t returned;          /* requests that came back here */
    uint64_t replies_rejected;  /* replies of this process that their requester rejected */
    uint64_t violations;        /* messages that break the protocol */
} hamlyn_am_statistics_t;

const char *hamlyn_am_error_text(void);
int hamlyn_am_in_handler(void);

int hamlyn_am_init(int header);
int hamlyn_am_init_named(int header, const char *name);
int hamlyn_am_terminate(void);
int hamlyn_am_set_deadline(int64_t milliseconds);
int hamlyn_am_set_return_policy(int policy);
int hamlyn_am_max_medium(void);
int hamlyn_am_max_long(void);
int hamlyn_am_get_statistics(hamlyn_am_statistics_t *statistics);

int hamlyn_am_allocate_bundle(int type, hamlyn_am_bundle_t *bundle);
int hamlyn_am_free_bundle(hamlyn_am_bundle_t bundle);
int hamlyn_am_get_event_mask(hamlyn_am_bundle_t bundle, int *mask);
int hamlyn_am_set_event_mask(hamlyn_am_bundle_t bundle, int mask);
int hamlyn_am_poll(hamlyn_am_bundle_t bundle);
int hamlyn_am_wait(hamlyn_am_bundle_t bundle, int64_t milliseconds);

int hamlyn_am_allocate_endpoint(hamlyn_am_bundle_t bundle, hamlyn_am_endpoint_t *endpoint, hamlyn_am_name_t *name);
int hamlyn_am_free_endpoint(hamlyn_am_endpoint_t endpoint);
int hamlyn_am_move_endpoint(hamlyn_am_endpoint_t endpoint, hamlyn_am_bundle_t from, hamlyn_am_bundle_t to);
int hamlyn_am_endpoint_name(hamlyn_am_endpoint_t endpoint, hamlyn_am_name_t *name);
int hamlyn_am_set_tag(hamlyn_am_endpoint_t endpoint, uint64_t tag);
int hamlyn_am_get_tag(hamlyn_am_endpoint_t endpoint, uint64_t *tag);
int hamlyn_am_set_segment(hamlyn_am_endpoint_t endpoint, void *start, size_t length_bytes);
int hamlyn_am_get_segment(hamlyn_am_endpoint_t endpoint, void **start, size_t *length_bytes);
int hamlyn_am_set_expected_resources(hamlyn_am_endpoint_t endpoint, int endpoints, int outstanding);
int hamlyn_am_max_medium_to(hamlyn_am_endpoint_t endpoint, int dest, int *length_bytes);
int hamlyn_am_outstanding(hamlyn_am_endpoint_t endpoint, int *count);

int hamlyn_am_set_handler(hamlyn_am_endpoint_t endpoint, uint8_t handler, hamlyn_am_handler_t function);
int hamlyn_am_set_handler_any(hamlyn_am_endpoint_t endpoint, uint8_t *handler, hamlyn_am_handler_t function);
int hamlyn_am_get_num_handlers(hamlyn_am_endpoint_t endpoint, int *count);
int hamlyn_am_set_num_handlers(hamlyn_am_endpoint_t endpoint, int count);

int hamlyn_am_map(hamlyn_am_endpoint_t endpoint, int index, hamlyn_am_name_t name, uint64_t tag);
int hamlyn_am_map_any(hamlyn_am_endpoint_t endpoint, int *index, hamlyn_am_name_t name, uint64_t tag);
int hamlyn_am_unmap(hamlyn_am_endpoint_t endpoint, int index);
int hamlyn_am_translation_in_use(hamlyn_am_endpoint_t endpoint, int index);
int hamlyn_am_translation_tag(hamlyn_am_endpoint_t endpoint, int index, uint64_t *tag);
int hamlyn_am_set_translation_tag(hamlyn_am_endpoint_t endpoint, int index, uint64_t tag);
int hamlyn_am_translation_name(hamlyn_am_endpoint_t endpoint, int index, hamlyn_am_name_t *name);
int hamlyn_am_max_num_translations(int *count);
int hamlyn_am_get_num_translations(hamlyn_am_endpoint_t endpoint, int *count);
int hamlyn_am_set_num_translations(hamlyn_am_endpoint_t endpoint, int count);

/* Requests: with is_async not 0 they wait for neither credit nor room, and return AM_ERR_NOT_SENT.
 * `args` has `numargs` of them. */
int hamlyn_am_request(hamlyn_am_endpoint_t endpoint, int dest, uint8_t handler, int is_async, int numargs, const uint32_t *args);
int hamlyn_am_request_i(hamlyn_am_endpoint_t endpoint, int dest, uint8_t handler, const void *data, size_t length_bytes,
                        int is_async, int numargs, const uint32_t *args);
int hamlyn_am_request_xfer(hamlyn_am_endpoint_t endpoint, int dest, size_t dest_offset, uint8_t handler, const void *data,
                           size_t length_bytes, int is_async, int numargs, const uint32_t *args);
int hamlyn_am_get_xfer(hamlyn_am_endpoint_t endpoint, int dest, size_t source_offset, uint8_t handler, size_t dest_offset,
                       size_t length_bytes, int is_async, int numargs, const uint32_t *args);
int hamlyn_am_reply(void *token, uint8_t handler, int numargs, const uint32_t *args);
int hamlyn_am_reply_i(void *token, uint8_t handler, const void *data, size_t length_bytes, int numargs, const uint32_t *args);
int hamlyn_am_reply_xfer(void *token, size_t dest_offset, uint8_t handler, const void *data, size_t length_bytes, int numargs,
                         const uint32_t *args);

int hamlyn_am_source(void *token, hamlyn_am_name_t *name);
int hamlyn_am_source_id(void *token, int *index);
int hamlyn_am_destination(void *token, hamlyn_am_endpoint_t *endpoint);
int hamlyn_am_message_tag(void *token, uint64_t *tag);
int hamlyn_am_get_returned(void *token, hamlyn_am_returned_t *returned);
int hamlyn_am_keep_token(void *token, void **kept);
int hamlyn_am_drop_token(void *kept);

#define HAMLYN_AM_NAME_TEXT_BYTES 105
int hamlyn_am_name_to_text(hamlyn_am_name_t name, char *text, size_t length_bytes);
int hamlyn_am_name_from_text(const char *text, hamlyn_am_name_t *name);
int hamlyn_am_publish(hamlyn_am_endpoint_t endpoint, const char *item);
int hamlyn_am_look_up(const char *program, const char *item, int milliseconds, hamlyn_am_name_t *name);

int hamlyn_am_spmd_start(int *argc, char ***argv, int nproc, hamlyn_am_bundle_t *bundle, hamlyn_am_endpoint_t *endpoint);
int hamlyn_am_spmd_num_procs(void);
int hamlyn_am_spmd_my_proc(void);
int hamlyn_am_spmd_barrier(void);
int hamlyn_am_spmd_all_gather(const void *source, void *dest, size_t length_bytes);
int hamlyn_am_spmd_broadcast(void *data, size_t length_bytes, int root);
int hamlyn_am_spmd_set_exit_callback(void (*callback)(int));
int hamlyn_am_spmd_exit(int status);

#ifdef __cplusplus
}
#endif

#endif
