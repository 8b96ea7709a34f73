/* Active Messages II as its implementation of 1995 to 1998 presented them (UDPAM, "am.h" of then):
 * its names, numbers and types over the same library as am.h, so that its programs compile.
 * Include this as their am.h. A program uses this header or am.h, not both.
 *
 * Differences from that implementation:
 *   forms have 0 to 16 arguments, not 4 and 8 alone; messages have up to AM_MaxMedium() and
 *     AM_MaxLong() bytes;
 *   AM_AllocateKnownEndpoint is not there: it named an endpoint by a port of UDP (publish names
 *     instead: AMX_ of am.h);
 *   the default handler 0 reports and does not end the program;
 *   a bulk handler is told an offset in its segment, as there, and so is the handler of a get;
 *     lengths and offsets are int.
 * All else is as am.h says. */
#ifndef AM1996_H
#define AM1996_H
#ifdef AM_H
#error "a program includes am.h or am1996.h, not both"
#endif
#define AM_H

#include "hamlyn_am.h"

#define AM_OK 0
#define AM_ERR_NOT_INIT 1
#define AM_ERR_NOT_TERM 2 /* never returned */
#define AM_ERR_BAD_ARG 3
#define AM_ERR_RESOURCE 4
#define AM_ERR_NOT_SENT 5
#define AM_ERR_IN_USE 6

#define AM_ALL 0xffffffff
#define AM_NONE 0x00000000

#define AM_PAR 1
#define AM_SEQ 0

#define EBADARGS 0x1
#define EBADENTRY 0x2
#define EBADTAG 0x4
#define EBADHANDLER 0x8
#define EBADSEGOFF 0x10
#define EBADLENGTH 0x20
#define EBADENDPOINT 0x40
#define ECONGESTION 0x80
#define EUNREACHABLE 0x100
#define EREPLYREJECTED 0x200 /* of later */

/* Operation codes: 8 for more than 4 arguments. */
#define REQUEST 0x10000000
#define REPLY 0x20000000
#define AM_REQUEST_4 (0x1 | REQUEST)
#define AM_REQUEST_8 (0x2 | REQUEST)
#define AM_REPLY_4 (0x1 | REPLY)
#define AM_REPLY_8 (0x2 | REPLY)
#define AM_REQUEST_MEDIUM_4 (0x4 | REQUEST)
#define AM_REQUEST_MEDIUM_8 (0x8 | REQUEST)
#define AM_REPLY_MEDIUM_4 (0x4 | REPLY)
#define AM_REPLY_MEDIUM_8 (0x8 | REPLY)
#define AM_REQUEST_LONG_4 (0x10 | REQUEST)
#define AM_REQUEST_LONG_8 (0x20 | REQUEST)
#define AM_REPLY_LONG_4 (0x10 | REPLY)
#define AM_REPLY_LONG_8 (0x20 | REPLY)
#define AM_GET_XFER_4 (0x40 | REQUEST)
#define AM_GET_XFER_8 (0x80 | REQUEST)
#define AM_GET_XFER_REPLY_4 (0x40 | REPLY)
#define AM_GET_XFER_REPLY_8 (0x80 | REPLY)

#define AM_NOEVENTS 0x0
#define AM_NOTEMPTY 0x1
#define AM_EMPTYTONOT 0x1
#define AM_MSGRECEIVED 0x2 /* as a mask: AM_CANSEND of am.h */

typedef hamlyn_am_bundle_t eb_t;
typedef hamlyn_am_endpoint_t ea_t;
typedef hamlyn_am_name_t en_t;
typedef uint64_t tag_t;
typedef uint8_t handler_t;
typedef int op_t;

#ifdef __cplusplus
extern "C" {
#endif

/* The code of then for one of the library. */
static inline int am1996_code(int code) { return code > 1 ? code + 1 : code; }
static inline int am1996_get_segment(ea_t endpoint, void **start, int *length) {
    size_t bytes = 0;
    int code = hamlyn_am_get_segment(endpoint, start, &bytes);
    if (code == 0 && length) *length = (int)bytes;
    return am1996_code(code);
}

static inline int AM_Init(void) { return am1996_code(hamlyn_am_init(HAMLYN_AM_1996)); }
static inline int AM_Terminate(void) { return am1996_code(hamlyn_am_terminate()); }
static inline int AM_MaxShort(void) { return 16; }
static inline int AM_MaxMedium(void) { return hamlyn_am_max_medium(); }
static inline int AM_MaxLong(void) { return hamlyn_am_max_long(); }
static inline int AM_MaxNumHandlers(void) { return 256; }
static inline int AM_MaxNumTranslations(int *count) { return am1996_code(hamlyn_am_max_num_translations(count)); }
static inline int AM_MaxSegLength(int *length) {
    if (!length) return AM_ERR_BAD_ARG;
    *length = 0x7fffffff;
    return AM_OK;
}
static inline int AM_AllocateBundle(int type, eb_t *bundle) { return am1996_code(hamlyn_am_allocate_bundle(type, bundle)); }
static inline int AM_FreeBundle(eb_t bundle) { return am1996_code(hamlyn_am_free_bundle(bundle)); }
/* Its name: AM1996_GetName, as that implementation's programs had it from their own tables. */
static inline int AM_AllocateEndpoint(eb_t bundle, ea_t *endpoint) {
    return am1996_code(hamlyn_am_allocate_endpoint(bundle, endpoint, NULL));
}
static inline int AM1996_GetName(ea_t endpoint, en_t *name) { return am1996_code(hamlyn_am_endpoint_name(endpoint, name)); }
static inline int AM_FreeEndpoint(ea_t endpoint) { return am1996_code(hamlyn_am_free_endpoint(endpoint)); }
static inline int AM_MoveEndpoint(ea_t endpoint, eb_t from, eb_t to) {
    return am1996_code(hamlyn_am_move_endpoint(endpoint, from, to));
}
static inline int AM_SetExpectedResources(ea_t endpoint, int endpoints, int outstanding) {
    return am1996_code(hamlyn_am_set_expected_resources(endpoint, endpoints, outstanding));
}
static inline int AM_Map(ea_t endpoint, int index, en_t name, tag_t tag) {
    return am1996_code(hamlyn_am_map(endpoint, index, name, tag));
}
static inline int AM_MapAny(ea_t endpoint, int *index, en_t name, tag_t tag) {
    return am1996_code(hamlyn_am_map_any(endpoint, index, name, tag));
}
static inline int AM_Unmap(ea_t endpoint, int index) { return am1996_code(hamlyn_am_unmap(endpoint, index)); }
static inline int AM_GetTranslationInuse(ea_t endpoint, int index) {
    return am1996_code(hamlyn_am_translation_in_use(endpoint, index));
}
static inline int AM_GetTranslationTag(ea_t endpoint, int index, tag_t *tag) {
    return am1996_code(hamlyn_am_translation_tag(endpoint, index, tag));
}
static inline int AM_GetTranslationName(ea_t endpoint, int index, en_t *name) {
    return am1996_code(hamlyn_am_translation_name(endpoint, index, name));
}
static inline int AM_GetNumTranslations(ea_t endpoint, int *count) {
    return am1996_code(hamlyn_am_get_num_translations(endpoint, count));
}
static inline int AM_SetNumTranslations(ea_t endpoint, int count) {
    return am1996_code(hamlyn_am_set_num_translations(endpoint, count));
}
static inline int AM_SetTag(ea_t endpoint, tag_t tag) { return am1996_code(hamlyn_am_set_tag(endpoint, tag)); }
static inline int AM_GetTag(ea_t endpoint, tag_t *tag) { return am1996_code(hamlyn_am_get_tag(endpoint, tag)); }
static inline int AM_SetSeg(ea_t endpoint, void *start, int length) {
    return am1996_code(hamlyn_am_set_segment(endpoint, start, (size_t)length));
}
/* `start` is the place for a pointer. */
static inline int AM_GetSeg(ea_t endpoint, void *start, int *length) {
    return am1996_get_segment(endpoint, (void **)start, length);
}
static inline int AM_SetHandler(ea_t endpoint, handler_t handler, hamlyn_am_handler_t function) {
    return am1996_code(hamlyn_am_set_handler(endpoint, handler, function));
}
static inline int AM_SetHandlerAny(ea_t endpoint, handler_t *handler, hamlyn_am_handler_t function) {
    return am1996_code(hamlyn_am_set_handler_any(endpoint, handler, function));
}
static inline int AM_GetNumHandlers(ea_t endpoint, int *count) {
    return am1996_code(hamlyn_am_get_num_handlers(endpoint, count));
}
static inline int AM_SetNumHandlers(ea_t endpoint, int count) {
    return am1996_code(hamlyn_am_set_num_handlers(endpoint, count));
}
/* The mask itself; AM_NOEVENTS for a bundle that is none. */
static inline int AM_GetEventMask(eb_t bundle) {
    int mask = AM_NOEVENTS;
    (void)hamlyn_am_get_event_mask(bundle, &mask);
    return mask;
}
static inline int AM_SetEventMask(eb_t bundle, int mask) { return am1996_code(hamlyn_am_set_event_mask(bundle, mask)); }
/* Returns at once without a mask, as there, and polls. */
static inline int AM_Wait(eb_t bundle) {
    int mask = AM_NOEVENTS;
    int code = hamlyn_am_get_event_mask(bundle, &mask);
    if (code == 0) code = mask == AM_NOEVENTS ? hamlyn_am_poll(bundle) : hamlyn_am_wait(bundle, -1);
    return am1996_code(code);
}
static inline int AM_WaitSema(eb_t bundle) { return AM_Wait(bundle); }
static inline int AM_Poll(eb_t bundle) { return am1996_code(hamlyn_am_poll(bundle)); }
static inline int AM_GetSourceEndpoint(void *token, en_t *name) { return am1996_code(hamlyn_am_source(token, name)); }
static inline int AM_GetDestEndpoint(void *token, ea_t *endpoint) { return am1996_code(hamlyn_am_destination(token, endpoint)); }
static inline int AM_GetMsgTag(void *token, tag_t *tag) { return am1996_code(hamlyn_am_message_tag(token, tag)); }

#define HAMLYN_AM_EP_ ea_t
#define HAMLYN_AM_PLACE_ int
#define HAMLYN_AM_BYTES_ int
#define HAMLYN_AM_CODE_(code) am1996_code(code)
#include "hamlyn_am_forms.h"

/* The spelling of then. */
#define AM_GetXferAsynch4 AM_GetXferAsync4
#define AM_GetXferAsynch8 AM_GetXferAsync8
/* Names that were old then. */
#define AM_RequestMedium4 AM_RequestI4
#define AM_RequestMedium8 AM_RequestI8
#define AM_RequestLong4 AM_RequestXfer4
#define AM_RequestLong8 AM_RequestXfer8
#define AM_RequestLongAsync4 AM_RequestXferAsync4
#define AM_RequestLongAsync8 AM_RequestXferAsync8
#define AM_ReplyMedium4 AM_ReplyI4
#define AM_ReplyMedium8 AM_ReplyI8
#define AM_ReplyLong4 AM_ReplyXfer4
#define AM_ReplyLong8 AM_ReplyXfer8

#ifdef __cplusplus
}
#endif

#endif
