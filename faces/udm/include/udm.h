/* User Direct Messaging for C and C++ (libhamlyn_udm): messages of a few words that run handlers,
 * and atomic sections. docs/user-direct-messaging.md has the rules; each function here says the
 * rest.
 *
 *   hamlyn run -n 4 PROGRAM
 *
 * Functions return UDM_OK (0) or a code; udm_strerror says what it means, udm_error_text what was
 * wrong with the last call of this thread that failed, and the remedy.
 *
 * All pointers: null is refused where it is not allowed; any other pointer must be readable, or
 * writable, as the function says, during the call. A udm_t * is a number: one that was closed is
 * UDM_NOT_OPEN. One thread of a process uses the library, the one that opened the first end
 * point: in others calls are UDM_WRONG_THREAD, except in handlers of UDM_THREAD. In a forked
 * child they are UDM_FORKED, until it opens an end point of its own. A C++ exception that leaves a
 * handler or a task ends the process. They must not be left by longjmp: what follows is undefined.
 *
 * Times are milliseconds: 0 does not wait, below 0 waits for ever. */
#ifndef UDM_H
#define UDM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The names in the library. */
#define udm_strerror hamlyn_udm_strerror
#define udm_error_text hamlyn_udm_error_text
#define udm_open hamlyn_udm_open
#define udm_close hamlyn_udm_close
#define udm_self hamlyn_udm_self
#define udm_nodes hamlyn_udm_nodes
#define udm_on hamlyn_udm_on
#define udm_inject hamlyn_udm_inject
#define udm_injectc hamlyn_udm_injectc
#define udm_inject_bytes hamlyn_udm_inject_bytes
#define udm_inject_bulk hamlyn_udm_inject_bulk
#define udm_bulk_area hamlyn_udm_bulk_area
#define udm_injectc_bytes hamlyn_udm_injectc_bytes
#define udm_bytes_max hamlyn_udm_bytes_max
#define udm_space_available hamlyn_udm_space_available
#define udm_available hamlyn_udm_available
#define udm_peek hamlyn_udm_peek
#define udm_extract hamlyn_udm_extract
#define udm_beginatom hamlyn_udm_beginatom
#define udm_endatom hamlyn_udm_endatom
#define udm_uac hamlyn_udm_uac
#define udm_spawn hamlyn_udm_spawn
#define udm_poll hamlyn_udm_poll
#define udm_wait hamlyn_udm_wait
#define udm_await hamlyn_udm_await
#define udm_barrier hamlyn_udm_barrier
#define udm_flush hamlyn_udm_flush
#define udm_lost hamlyn_udm_lost
#define udm_mode hamlyn_udm_mode
#define udm_get_statistics hamlyn_udm_get_statistics
#define udm_next_event hamlyn_udm_next_event

/* Codes. */
enum {
    UDM_OK = 0,
    UDM_NOT_OPEN = 1,         /* the end point is none, or was closed */
    UDM_BAD_ARGUMENT = 2,     /* null, or out of range */
    UDM_RESOURCE = 3,         /* the system or the interface cannot */
    UDM_WOULD_BLOCK = 4,      /* no room at present */
    UDM_IN_USE = 5,           /* an end point of that name is open here */
    UDM_QUOTA = 6,            /* no room, and messages fill at least half of the memory that the
                               * destination lends: it takes nothing */
    UDM_LOST = 7,             /* a node is gone */
    UDM_BAD_HANDLER = 8,      /* handlers are numbered from 0 to UDM_HANDLERS_MAX - 1 */
    UDM_BAD_NODE = 9,         /* nodes are numbered from 0 on */
    UDM_TOO_LONG = 10,        /* more words or bytes than a message has */
    UDM_BAD_DISPOSE = 11,     /* there is no message to extract, or to show */
    UDM_DISPOSE_FAILURE = 12, /* the message of a handler was not extracted */
    UDM_PROTECTION = 13,      /* the mask has a bit of the layer */
    UDM_REFUSED = 14,         /* the destination refused a message of before */
    UDM_WRONG_THREAD = 15,
    UDM_FORKED = 16,
    UDM_TIMED_OUT = 17,
    UDM_IN_HANDLER = 18,      /* handlers and tasks may not call this */
    UDM_UNREACHABLE = 19,     /* a node could not be reached when the end point was opened */
    UDM_OUTSIDE = 20          /* the data do not lie in the area of the destination */
};

typedef struct udm udm_t;
typedef int udm_status;
/* A handler or a task. `argument` is that of udm_on or udm_spawn. */
typedef void (*udm_function)(udm_t *udm, void *argument);

#define UDM_WORDS_MAX 14
#define UDM_HANDLERS_MAX 4094

const char *udm_strerror(int code);
/* Good until the next call of this in the same thread. */
const char *udm_error_text(void);

/* Opening. */

/* The nodes of a program. All zero: the job that `hamlyn run`, `mpirun` or `srun` has started, or
 * a job of one node. Otherwise a name that all nodes have in common, and the names of the
 * interfaces of all nodes ("name", or "host/name"), by number; that of this node is the one that
 * it takes. */
typedef struct udm_group {
    const char *name;
    uint32_t me;
    uint32_t nodes;
    const char *const *addresses;
} udm_group;

/* The times at which handlers run. */
enum {
    UDM_SAFEPOINT = 0, /* when the program polls or waits, at the end of a section, and while an
                        * injection waits for room */
    UDM_POLLING = 1,   /* only when it polls or waits */
    UDM_THREAD = 2,    /* at once, in a thread of their own, except in sections of the program. All
                        * that handlers share with the program is used in sections only */
    UDM_SIGNAL = 3     /* at once, in the thread of the program, which a signal interrupts, except in
                        * sections and in calls for this end point, whose end runs them. Handlers do
                        * only what the handler of a signal may do (signal-safety(7)): they allocate
                        * nothing, lock nothing and use no streams. Of this library they call, for
                        * their own end point, the functions that handlers may call, but neither
                        * udm_spawn nor udm_inject_bulk with data of the own area (UDM_IN_HANDLER);
                        * errors have no text there. All that handlers share with the program is
                        * used in sections, or is volatile sig_atomic_t. All nodes are of one host,
                        * strategy "proc"; a group has one such end point, and no CRL beside it. A
                        * thread that blocks the signal is not interrupted */
};

/* All zero, or null in place of them: the end point "main" of the job. */
typedef struct udm_options {
    udm_group group;
    const char *name;     /* of the end point, the same at all nodes; null: "main" */
    int interrupts;       /* UDM_SAFEPOINT and its like */
    uint32_t queue_bytes; /* of messages that are taken out and not extracted; 0: 64 MiB */
    int64_t wait_ms;      /* the time that an injection waits for room; 0: for ever */
    int64_t open_ms;      /* to wait for each node; 0: as the launcher says, or a minute */
    size_t area_bytes;    /* of memory into which others bring data (udm_inject_bulk); 0: none */
    int interrupt_signal; /* with UDM_SIGNAL: SIGURG, SIGIO, SIGUSR1 or SIGUSR2, which has no handler
                           * before (UDM_IN_USE); 0: SIGURG. Closing restores its action */
} udm_options;

/* Opens the end point. Blocks until all nodes have opened theirs, allocates, and connects to all.
 * End points of one group share its interface; one with UDM_THREAD comes before others of its
 * group (UDM_IN_USE). Set handlers before the first call that may run some, and begin with
 * udm_barrier if a node may end soon: a node tells nobody that it has met all others. */
udm_status udm_open(udm_t **udm, const udm_options *options);
/* Closes it. Messages that were injected are handed over before, for a second at most:
 * UDM_TIMED_OUT if some were not. It is closed all the same. */
udm_status udm_close(udm_t *udm);
udm_status udm_self(udm_t *udm, uint32_t *node);
udm_status udm_nodes(udm_t *udm, uint32_t *nodes);
/* Sets a handler, in place of an earlier one. A message without a handler is disposed of and
 * counted. A handler runs in an atomic section, extracts its message (udm_extract) or disposes of
 * it, and may extract more. If it ends without, that is done for it, and the call in which it ran
 * is UDM_DISPOSE_FAILURE; if that was an injection, and with UDM_THREAD, the next call is that only
 * the program may make. Allocates. */
udm_status udm_on(udm_t *udm, uint16_t handler, udm_function function, void *argument);

/* Messages. These may be called in handlers, and all but the last four in tasks. */

/* Injects a message of `count` words, UDM_WORDS_MAX at most, for a handler of a node, this one
 * included. When it returns UDM_OK the message is committed whole: it is extracted once, unless a
 * node ends, and those of one node to another arrive in order. Waits for room; handlers run
 * meanwhile with UDM_SAFEPOINT. */
udm_status udm_inject(udm_t *udm, uint32_t to, uint16_t handler, size_t count, const uint32_t *words);
/* The same if there is room now: UDM_WOULD_BLOCK or UDM_QUOTA if there is none. */
udm_status udm_injectc(udm_t *udm, uint32_t to, uint16_t handler, size_t count, const uint32_t *words);
/* Injects bytes: as many as udm_bytes_max says. */
udm_status udm_inject_bytes(udm_t *udm, uint32_t to, uint16_t handler, const void *data, size_t length_bytes);
udm_status udm_injectc_bytes(udm_t *udm, uint32_t to, uint16_t handler, const void *data, size_t length_bytes);
udm_status udm_bytes_max(udm_t *udm, uint32_t to, size_t *length_bytes);
/* Brings data of any length into the area of a node, from `at` on, and injects a message of words
 * that runs its handler when all of them are there (udm_message.bulk_at). The data are the caller's
 * again when it returns. They go as messages of 32 KiB at most, each of which waits for room as
 * that of udm_inject does: if one has found none in time, those before it are written there, and no
 * handler runs. UDM_OUTSIDE if they do not lie in the area (udm_options.area_bytes). Data
 * of the own area are copied first, which allocates. */
udm_status udm_inject_bulk(udm_t *udm, uint32_t to, uint16_t handler, size_t count, const uint32_t *words,
                           const void *data, size_t length_bytes, size_t at);
/* The memory of this node into which others bring data, as long as the end point is open. Data are
 * written there in calls for this end point; with UDM_THREAD also outside of sections. The length
 * may be null. */
udm_status udm_bulk_area(udm_t *udm, void **area, size_t *length_bytes);
/* Words that a message may have so that udm_injectc finds room for it now: UDM_WORDS_MAX, or 0.
 * Injects nothing and does not wait. */
udm_status udm_space_available(udm_t *udm, uint32_t to, size_t *words);

/* A message that was shown or extracted. */
typedef struct udm_message {
    uint32_t source;     /* the node that sent it */
    uint16_t handler;    /* that it names */
    uint16_t words;      /* whole words; bytes that fill none do not count */
    size_t length_bytes;
    const void *data;    /* a handler's own message: until it returns; others: until the next call
                          * of the library for this end point */
    size_t bulk_at;      /* the place of the data that it brought into the area, */
    size_t bulk_bytes;   /* and their number: 0 if it brought none */
} udm_message;

/* One of its words; 0 beyond its end. */
static inline uint32_t udm_word(const udm_message *message, size_t number) {
    const unsigned char *at = (const unsigned char *)message->data + 4 * number;
    if (number >= message->words) return 0;
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Says if a message is there: 1 or 0. */
udm_status udm_available(udm_t *udm, int *is_there);
/* Shows the next message, which stays the next one; in a handler its own, until that is extracted.
 * It was loaded, so it shows the same again. UDM_BAD_DISPOSE if there is none, and with UDM_THREAD
 * outside of handlers and of a section: the next handler would take its place. */
udm_status udm_peek(udm_t *udm, udm_message *message);
/* Extracts it, where udm_peek would show it. Outside of handlers its handler does not run. `message`
 * may be null. */
udm_status udm_extract(udm_t *udm, udm_message *message);
static inline udm_status udm_dispose(udm_t *udm) { return udm_extract(udm, NULL); }

/* Atomicity. These may be called in handlers and tasks. */

/* The register of atomicity: bits of the program, and those that only the layer changes. */
#define UDM_INTERRUPT_DISABLE 1u /* a section: no handler runs but those that it polls for */
#define UDM_TIMER_FORCE 2u       /* kept, and without effect: a section holds up no sender */
#define UDM_DISPOSE_PENDING 4u   /* a handler has not extracted its message */
#define UDM_ATOMICITY_EXTEND 8u  /* handlers wait for the end of the section */

/* UAC := UAC or mask. UDM_PROTECTION if the mask has a bit of the layer. */
udm_status udm_beginatom(udm_t *udm, unsigned mask);
/* UAC := UAC and not mask; runs handlers that have waited for it, 64 at most. UDM_DISPOSE_FAILURE
 * in a handler that has not extracted its message. A handler is a section until it returns:
 * handlers do not run in it, even if it has ended its section. */
udm_status udm_endatom(udm_t *udm, unsigned mask);
udm_status udm_uac(udm_t *udm, unsigned *bits);
/* Runs a task when handlers run next outside of a section, after those that were spawned before.
 * Allocates. A task is no section. */
udm_status udm_spawn(udm_t *udm, udm_function task, void *argument);

/* Progress. For the program alone: UDM_IN_HANDLER in handlers and tasks. Numbers of handlers that
 * ran may be null. */

/* Runs the handlers of messages that are there, `most` at most. Does not wait. */
udm_status udm_poll(udm_t *udm, size_t most, size_t *ran);
/* Waits until a message is there or a node is lost, and runs handlers. None may have run. */
udm_status udm_wait(udm_t *udm, int64_t milliseconds, size_t *ran);
/* Waits until a message is there, or a node is lost, and runs no handler: UDM_TIMED_OUT if no
 * message is there. */
udm_status udm_await(udm_t *udm, int64_t milliseconds);
/* Waits until all nodes have entered this barrier, in each of its rounds so long after the last
 * message; handlers run meanwhile. On one host, messages that had been injected before have been
 * handled when it returns. UDM_LOST or UDM_TIMED_OUT: the barrier is of no use any more. */
udm_status udm_barrier(udm_t *udm, int64_t milliseconds);
/* Waits until all that was injected has been handed to its links: the last call of a program. */
udm_status udm_flush(udm_t *udm, int64_t milliseconds);

/* Reports. For the program alone. */

/* UDM_OK while the node is there, UDM_LOST if it is gone; udm_error_text says why. */
udm_status udm_lost(udm_t *udm, uint32_t node);

enum { UDM_DIRECT = 0, UDM_BUFFERED = 1 };
/* The case of delivery to a node of this host; `waiting_bytes`, which may be null, is an upper
 * bound of the bytes that wait in its memory. */
udm_status udm_mode(udm_t *udm, uint32_t node, int *mode, uint64_t *waiting_bytes);

/* Counts since the end point was opened; none falls. */
typedef struct udm_statistics {
    uint64_t sent;
    uint64_t received;
    uint64_t upcalls;   /* handlers that interrupted the program */
    uint64_t extended;  /* sections at whose end handlers ran that had waited for it */
    uint64_t unhandled; /* messages for handlers that nobody has set */
    uint64_t strangers; /* messages of interfaces that are no nodes */
    uint64_t wrong;     /* messages of other hosts that break the rules */
} udm_statistics;
udm_status udm_get_statistics(udm_t *udm, udm_statistics *statistics);

enum {
    UDM_EVENT_NONE = 0,
    UDM_EVENT_LOST = 1,      /* a node is gone */
    UDM_EVENT_REFUSED = 2,   /* a node has refused a message */
    UDM_EVENT_BUFFERING = 3, /* messages for a node fill half of the memory that it lends */
    UDM_EVENT_DRAINED = 4,   /* it has taken all of them */
    UDM_EVENT_MISSED = 5,    /* so many events were not asked for in time */
    UDM_EVENT_OTHER = 6,
    UDM_EVENT_BUFFERING_INCOMING = 7, /* messages of a node fill half of the memory that this one lends */
    UDM_EVENT_DRAINED_INCOMING = 8    /* this one has taken all of them */
};
typedef struct udm_event {
    int kind;
    uint32_t node;
    uint64_t count;
    uint64_t waiting_bytes;
    uint64_t limit_bytes;
    char reason[96]; /* a text that ends with a zero */
} udm_event;
/* The next event of the end point's group, which each is told once: UDM_EVENT_NONE if there is
 * none. Does not wait. */
udm_status udm_next_event(udm_t *udm, udm_event *event);

#include "udm_forms.h"

#ifdef __cplusplus
}
#endif

#endif
