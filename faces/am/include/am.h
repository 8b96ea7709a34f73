/* Active Messages II over Hamlyn, for C99 and C++: the names and numbers of AMUDP and AMMPI, so
 * that their programs compile.
 *
 *   cc program.c -lhamlyn_am
 *
 * An *endpoint* has a name, which others map, and a tag, which they must know. A *request* names a
 * handler, which runs at its destination when the bundle of that endpoint is polled, and may send
 * one *reply*. Requests are short (0 to 16 arguments of 32 bits), medium (with data, of which the
 * handler has a copy to change as it likes, aligned to 8 bytes) or bulk (into the segment of the
 * destination). Each request that was accepted ends once: by a reply, by an empty reply, which the
 * library sends if the handler sends none, or by its return to handler 0 of its sender.
 *
 * Handlers, by the kind of the message:
 *
 *   short              void (void *token, int a0, ...)
 *   medium, bulk, get  void (void *token, void *buf, size_t nbytes, int a0, ...)
 *   handler 0          void (int status, op_t opcode, void *token)
 *
 * `int nbytes` does, too. Handler 0 is for messages that come back. A handler has as many arguments
 * as its messages have; C23 needs a cast to AMX_handler_fn_t, other standards and C++ do not. A bulk
 * handler has the place in its own segment, and so has the handler of a get, which runs at the
 * requester. A handler may reply (once, if the message is a request), ask about its token, and read
 * settings; all else returns AM_ERR_RESOURCE while it runs. It must not throw, nor longjmp out of
 * itself: the process ends.
 *
 * All calls return AM_OK or an error, and AMX_ErrorText() has the remedy. A call that fails has
 * sent no message; a bulk request that has waited in vain may have written a part of its data into
 * the segment. All calls are made by the thread that called AM_Init; AM_PAR is not there yet, and
 * AM_AllocateBundle says so (AM_ERR_RESOURCE).
 *
 * Requests without Async or Try wait for a credit (16 requests for each translation) and for room,
 * and run handlers of their bundle meanwhile: 60 s at most, unless AMX_SetDeadline or
 * HAMLYN_AM_DEADLINE (seconds) says otherwise; then they return AM_ERR_NOT_SENT. The others never
 * wait, but for the connection if they are the first to a process, which a live one on the same
 * host makes in about a millisecond, and 1 s at most. Replies never wait.
 *
 * The environment sets, when the library starts: HAMLYN_AM_CREDITS (1 to 24; 16) requests for each
 * translation, HAMLYN_AM_FRAMES (1 to 32,767; 1,024) endpoints that are resident at a time,
 * HAMLYN_AM_CONGESTION seconds (10) for which a message may be refused until it comes back. A
 * value that cannot be is AM_ERR_BAD_ARG of AM_Init.
 *
 * Differences from AMUDP and AMMPI:
 *   AM_GetXferM, AM_CANSEND, AM_Map after AM_SetExpectedResources and AM_MoveEndpoint with traffic
 *     are there;
 *   the default handler 0 reports on standard error, once a second at most, and does not end the
 *     program (AMX_SetReturnPolicy, or HAMLYN_AM_RETURNED=abort, report or silent);
 *   a message to oneself runs its handler at the next poll, not in the request;
 *   a bulk message of 0 bytes is checked against the segment, as any other;
 *   AM_GetMsgTag gives the endpoint's own tag, which was checked; AM_ERR_RESOURCE if that is
 *     AM_ALL, as tags do not travel;
 *   messages to handler 0 are AM_ERR_BAD_ARG;
 *   between hosts, medium messages and all replies are one packet of the path, of about 1,000
 *     bytes or more (AMX_MaxMediumTo): longer medium requests are AM_ERR_BAD_ARG, and longer
 *     replies come back (EREPLYREJECTED, reason EBADLENGTH); bulk requests and gets are not
 *     limited so;
 *   AM_SetExpectedResources is a hint that changes nothing.
 */
#ifndef AM_H
#define AM_H

#include "hamlyn_am.h"

#define AM_OK 0
#define AM_ERR_NOT_INIT 1 /* call AM_Init first */
#define AM_ERR_BAD_ARG 2
#define AM_ERR_RESOURCE 3 /* a limit, something that is gone, or a call that is not allowed now */
#define AM_ERR_NOT_SENT 4 /* try again later */
#define AM_ERR_IN_USE 5

#define AM_REQUEST_M 1
#define AM_REQUEST_IM 2
#define AM_REQUEST_XFER_M 3
#define AM_REPLY_M 4 /* of any kind */
#define AM_REPLY_IM 5
#define AM_REPLY_XFER_M 6
#define AM_GET_XFER_M 7

#define EBADARGS 1
#define EBADENTRY 2
#define EBADTAG 3         /* the endpoint has another tag */
#define EBADHANDLER 4     /* the endpoint has no such handler */
#define EBADSEGOFF 5      /* the offset lies outside of the segment, or there is none */
#define EBADLENGTH 6      /* the data do not fit the segment from there on */
#define EBADENDPOINT 7    /* the endpoint is gone */
#define ECONGESTION 8     /* the destination had no room all the time */
#define EUNREACHABLE 9    /* the process is gone; the message may have been delivered */
#define EREPLYREJECTED 10 /* the requester rejected this reply: AMX_GetReturned has the reason */

#define AM_NONE ((tag_t)0) /* no message gets in */
#define AM_ALL ((tag_t)1)  /* every message does */

#define AM_SEQ 0
#define AM_PAR 1

#define AM_NOEVENTS 0
#define AM_NOTEMPTY 1 /* a message is there */
#define AM_CANSEND 2  /* the request that last returned AM_ERR_NOT_SENT would be sent now, or a message is there */

#define AMX_RETURN_REPORT 0
#define AMX_RETURN_ABORT 1
#define AMX_RETURN_SILENT 2

#define AMX_NAME_TEXT_BYTES HAMLYN_AM_NAME_TEXT_BYTES

typedef hamlyn_am_bundle_t eb_t;
typedef hamlyn_am_endpoint_t ep_t;
typedef hamlyn_am_name_t en_t;
typedef uint64_t tag_t;
typedef uint8_t handler_t;
typedef int op_t;
typedef hamlyn_am_handler_t AMX_handler_fn_t;
typedef hamlyn_am_returned_t AMX_returned_t;
typedef hamlyn_am_statistics_t AMX_statistics_t;

#ifdef __cplusplus
extern "C" {
#endif

/* Set-up. */

/* Starts the library in this thread; once more counts. AM_ERR_RESOURCE in another thread than the
 * first. */
static inline int AM_Init(void) { return hamlyn_am_init(HAMLYN_AM_TODAY); }
/* In place of the first AM_Init: others find what this process publishes under that name.
 * AM_ERR_IN_USE after AM_Init. */
static inline int AMX_InitNamed(const char *name) { return hamlyn_am_init_named(HAMLYN_AM_TODAY, name); }
/* Ends the library when it was called as often as AM_Init: frees all, and peers' messages come
 * back to them: EBADENDPOINT if they waited here, EUNREACHABLE if they come later. Sent
 * messages are handed over first, for 1 s at most. */
static inline int AM_Terminate(void) { return hamlyn_am_terminate(); }
/* The text of the last error of this thread, with the remedy; good until the next call of this
 * function. */
static inline const char *AMX_ErrorText(void) { return hamlyn_am_error_text(); }
/* Sets the time for which a request waits, in milliseconds; below 0 for ever. */
static inline int AMX_SetDeadline(int64_t milliseconds) { return hamlyn_am_set_deadline(milliseconds); }
/* Sets the action of the default handler 0 in this thread: AMX_RETURN_REPORT and its like. */
static inline int AMX_SetReturnPolicy(int policy) { return hamlyn_am_set_return_policy(policy); }
static inline int AMX_GetStatistics(AMX_statistics_t *statistics) { return hamlyn_am_get_statistics(statistics); }

/* Limits. */
static inline int AM_MaxShort(void) { return 16; }                        /* arguments */
static inline int AM_MaxMedium(void) { return hamlyn_am_max_medium(); }   /* bytes: 65,000 */
static inline int AM_MaxLong(void) { return hamlyn_am_max_long(); }       /* bytes: 2^30; replies have AM_MaxMedium() at most */
static inline int AM_MaxNumHandlers(void) { return 256; }
static inline int AM_MaxNumTranslations(int *count) { return hamlyn_am_max_num_translations(count); } /* 2^20 */
static inline int AM_MaxSegLength(uintptr_t *length) {
    if (!length) return AM_ERR_BAD_ARG;
    *length = UINTPTR_MAX / 2;
    return AM_OK;
}

/* Bundles and endpoints. */

/* `type` is AM_SEQ. AM_PAR: AM_ERR_RESOURCE, as it is not there yet. */
static inline int AM_AllocateBundle(int type, eb_t *bundle) { return hamlyn_am_allocate_bundle(type, bundle); }
/* Frees the bundle and the endpoints in it. */
static inline int AM_FreeBundle(eb_t bundle) { return hamlyn_am_free_bundle(bundle); }
/* A new endpoint, with the tag AM_NONE, 256 translations and handlers, and no segment. `name` may
 * be null. */
static inline int AM_AllocateEndpoint(eb_t bundle, ep_t *endpoint, en_t *name) {
    return hamlyn_am_allocate_endpoint(bundle, endpoint, name);
}
/* Its outstanding requests end silently; messages to it come back (EBADENDPOINT). */
static inline int AM_FreeEndpoint(ep_t endpoint) { return hamlyn_am_free_endpoint(endpoint); }
/* Moves an endpoint with all that waits for it; its name stays. AM_ERR_RESOURCE if it is not in
 * `from`. */
static inline int AM_MoveEndpoint(ep_t endpoint, eb_t from, eb_t to) { return hamlyn_am_move_endpoint(endpoint, from, to); }
static inline int AMX_GetEndpointName(ep_t endpoint, en_t *name) { return hamlyn_am_endpoint_name(endpoint, name); }
static inline int AM_SetExpectedResources(ep_t endpoint, int endpoints, int outstanding) {
    return hamlyn_am_set_expected_resources(endpoint, endpoints, outstanding);
}
/* Bytes of the longest medium message and reply to that destination: AM_MaxMedium() on one host,
 * fewer between hosts. Connects to it. */
static inline int AMX_MaxMediumTo(ep_t endpoint, int index, int *nbytes) {
    return hamlyn_am_max_medium_to(endpoint, index, nbytes);
}
/* Requests of the endpoint that are neither answered nor returned. */
static inline int AMX_GetOutstanding(ep_t endpoint, int *count) { return hamlyn_am_outstanding(endpoint, count); }

/* Segment and tag, at any time. Messages that come later are held to them; those that came are
 * taken. */

/* The segment is memory of the program, which must stay until another one is set or the endpoint
 * is freed. Length 0: none. */
static inline int AM_SetSeg(ep_t endpoint, void *start, uintptr_t length) { return hamlyn_am_set_segment(endpoint, start, length); }
static inline int AM_GetSeg(ep_t endpoint, void **start, uintptr_t *length) {
    size_t bytes = 0;
    int code = length ? hamlyn_am_get_segment(endpoint, start, &bytes) : AM_ERR_BAD_ARG;
    if (code == AM_OK) *length = bytes;
    return code;
}
static inline int AM_SetTag(ep_t endpoint, tag_t tag) { return hamlyn_am_set_tag(endpoint, tag); }
static inline int AM_GetTag(ep_t endpoint, tag_t *tag) { return hamlyn_am_get_tag(endpoint, tag); }

/* Translations, at any time. To map connects to nobody: the first message does. */

/* AM_ERR_IN_USE if the number is mapped; AM_ERR_BAD_ARG for the tag AM_NONE, which opens no
 * endpoint. */
static inline int AM_Map(ep_t endpoint, int index, en_t name, tag_t tag) { return hamlyn_am_map(endpoint, index, name, tag); }
/* The lowest free number. AM_ERR_RESOURCE if there is none. */
static inline int AM_MapAny(ep_t endpoint, int *index, en_t name, tag_t tag) {
    return hamlyn_am_map_any(endpoint, index, name, tag);
}
/* Requests that are outstanding end as they would have. */
static inline int AM_UnMap(ep_t endpoint, int index) { return hamlyn_am_unmap(endpoint, index); }
/* AM_OK if it is mapped, AM_ERR_RESOURCE if not. */
static inline int AM_GetTranslationInuse(ep_t endpoint, int index) { return hamlyn_am_translation_in_use(endpoint, index); }
static inline int AM_GetTranslationTag(ep_t endpoint, int index, tag_t *tag) {
    return hamlyn_am_translation_tag(endpoint, index, tag);
}
static inline int AMX_SetTranslationTag(ep_t endpoint, int index, tag_t tag) {
    return hamlyn_am_set_translation_tag(endpoint, index, tag);
}
static inline int AM_GetTranslationName(ep_t endpoint, int index, en_t *name) {
    return hamlyn_am_translation_name(endpoint, index, name);
}
static inline int AM_GetNumTranslations(ep_t endpoint, int *count) { return hamlyn_am_get_num_translations(endpoint, count); }
/* 1 to AM_MaxNumTranslations. AM_ERR_IN_USE if a higher number is mapped. */
static inline int AM_SetNumTranslations(ep_t endpoint, int count) { return hamlyn_am_set_num_translations(endpoint, count); }

/* Handlers. */

/* Handler 0 is for messages that come back. A null function removes the handler. */
static inline int AM_SetHandler(ep_t endpoint, handler_t handler, AMX_handler_fn_t function) {
    return hamlyn_am_set_handler(endpoint, handler, function);
}
/* The lowest free number from 1 on. AM_ERR_RESOURCE if there is none. */
static inline int AM_SetHandlerAny(ep_t endpoint, handler_t *handler, AMX_handler_fn_t function) {
    return hamlyn_am_set_handler_any(endpoint, handler, function);
}
static inline int AM_GetNumHandlers(ep_t endpoint, int *count) { return hamlyn_am_get_num_handlers(endpoint, count); }
/* 1 to 256. AM_ERR_IN_USE if a higher one is set. */
static inline int AM_SetNumHandlers(ep_t endpoint, int count) { return hamlyn_am_set_num_handlers(endpoint, count); }

/* Events. */

static inline int AM_GetEventMask(eb_t bundle, int *mask) { return hamlyn_am_get_event_mask(bundle, mask); }
static inline int AM_SetEventMask(eb_t bundle, int mask) { return hamlyn_am_set_event_mask(bundle, mask); }
/* Waits for an event of the mask, without processor time after a while, and polls. The mask stays.
 * AM_ERR_BAD_ARG without a mask. */
static inline int AM_WaitSema(eb_t bundle) { return hamlyn_am_wait(bundle, -1); }
/* The same for so many milliseconds: AM_ERR_NOT_SENT if nothing happened. */
static inline int AMX_WaitSemaFor(eb_t bundle, int milliseconds) { return hamlyn_am_wait(bundle, milliseconds); }
/* Runs the handlers of what is there. Does not wait. */
static inline int AM_Poll(eb_t bundle) { return hamlyn_am_poll(bundle); }

/* Inside a handler; afterwards its token is AM_ERR_RESOURCE. */

/* The name of the sender, which can be mapped. AM_ERR_RESOURCE if it is not known any more. */
static inline int AM_GetSourceEndpoint(void *token, en_t *name) { return hamlyn_am_source(token, name); }
/* The number over which this endpoint has the sender mapped. AM_ERR_RESOURCE if it has not. */
static inline int AMX_GetSourceId(void *token, int *index) { return hamlyn_am_source_id(token, index); }
static inline int AM_GetDestEndpoint(void *token, ep_t *endpoint) { return hamlyn_am_destination(token, endpoint); }
static inline int AM_GetMsgTag(void *token, tag_t *tag) { return hamlyn_am_message_tag(token, tag); }
/* The message that came back, in handler 0. */
static inline int AMX_GetReturned(void *token, AMX_returned_t *returned) { return hamlyn_am_get_returned(token, returned); }
/* Puts the reply off: `kept` is a token for AM_ReplyM and its like, once, outside of handlers.
 * Until then the requester's credit is not free. */
static inline int AMX_KeepToken(void *token, void **kept) { return hamlyn_am_keep_token(token, kept); }
/* Answers by an empty reply. */
static inline int AMX_DropToken(void *kept) { return hamlyn_am_drop_token(kept); }

/* Names. A name is 64 bytes without pointers: it may travel as it is. */

static inline int AMX_enEqual(en_t one, en_t other) {
    int at;
    for (at = 0; at < 8; at++)
        if (one.words[at] != other.words[at]) return 0;
    return 1;
}
/* As text of AMX_NAME_TEXT_BYTES bytes, and back. */
static inline int AMX_NameToText(en_t name, char *text, size_t length) { return hamlyn_am_name_to_text(name, text, length); }
static inline int AMX_NameFromText(const char *text, en_t *name) { return hamlyn_am_name_from_text(text, name); }
/* Offers the endpoint's name to others, who look it up by the name of this process (AMX_InitNamed)
 * and the item. */
static inline int AMX_Publish(ep_t endpoint, const char *item) { return hamlyn_am_publish(endpoint, item); }
/* Waits for so many milliseconds, below 0 for ever, until the process is there and has published
 * the item. AM_ERR_RESOURCE if not. */
static inline int AMX_Lookup(const char *process, const char *item, int milliseconds, en_t *name) {
    return hamlyn_am_look_up(process, item, milliseconds, name);
}

/* Requests and replies, with M from 0 to 16 arguments `int a0, int a1, ...` at the end:
 *
 *   AM_RequestM(ep, dest, handler, ...)
 *     AMX_TryRequestM does not wait
 *   AM_RequestIM(ep, dest, handler, source, nbytes, ...)
 *     AMX_TryRequestIM does not wait
 *   AM_RequestXferM(ep, dest, dest_offset, handler, source, nbytes, ...)
 *     AM_RequestXferAsyncM does not wait
 *   AM_GetXferM(ep, dest, source_offset, handler, dest_offset, nbytes, ...)
 *     AM_GetXferAsyncM does not wait
 *   AM_ReplyM(token, handler, ...)
 *   AM_ReplyIM(token, handler, source, nbytes, ...)
 *   AM_ReplyXferM(token, dest_offset, handler, source, nbytes, ...)
 *
 * The source is free when the call returns. AM_RequestXferM, which waits, may send its data from
 * there: they are not returned then, if the message comes back. All others copy them. AM_GetXferM
 * reads the remote segment into the own one. A request whose destination is gone is AM_OK, and comes back
 * (EUNREACHABLE). While a request waits it polls the bundle of `ep` alone: a program that has the
 * destination in another bundle of its own polls that itself. */
#define HAMLYN_AM_EP_ ep_t
#define HAMLYN_AM_PLACE_ uintptr_t
#define HAMLYN_AM_BYTES_ size_t
#define HAMLYN_AM_CODE_(code) (code)
#include "hamlyn_am_forms.h"

#ifdef __cplusplus
}

/* Handlers of any type, without a cast. */
template <class... Arguments>
static inline int AM_SetHandler(ep_t endpoint, handler_t handler, void (*function)(Arguments...)) {
    return hamlyn_am_set_handler(endpoint, handler, reinterpret_cast<AMX_handler_fn_t>(function));
}
template <class... Arguments>
static inline int AM_SetHandlerAny(ep_t endpoint, handler_t *handler, void (*function)(Arguments...)) {
    return hamlyn_am_set_handler_any(endpoint, handler, reinterpret_cast<AMX_handler_fn_t>(function));
}
#endif

#endif
