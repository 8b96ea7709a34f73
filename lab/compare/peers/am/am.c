/* Active Messages of Hamlyn in C, by am.h. The segment is private memory of the receiver, since
 * am.h has no other; so long messages are copied. */
#include "../harness/active.h"

#include <am.h>

enum {
  /* Requests and replies of 0, 4, 8 and 16 arguments. */
  REQUESTED = 1,
  REPLIED = REQUESTED + 4,
  REQUESTED_MEDIUM = REPLIED + 4,
  REPLIED_MEDIUM,
  REQUESTED_LONG,
  ASKED,
  ANSWERED,
};
#define OTHER 0
#define TAG 7

static eb_t bundle;
static ep_t endpoint;

static void check(int result, const char *what) {
  if (result != AM_OK) fail("%s: %s", what, AMX_ErrorText());
}

static const char *peer_supports(const struct order *order) {
  if (order->latency && order->category == LONG) return "round trips of long messages are not measured";
  if (order->category == MEDIUM && order->size > (size_t)AM_MaxMedium()) return "longer than a medium message";
  return NULL;
}

static void peer_request(const char *data, size_t place) {
  size_t size = session.order.size;
  switch (session.order.category) {
    case SHORT:
#define REQUEST(N) check(APPLY(AM_Request##N, endpoint, OTHER, REQUESTED + number_of(N) GIVEN_##N(int)), "a request")
      FOR_ARGUMENTS(REQUEST)
      break;
    case MEDIUM: check(AM_RequestI0(endpoint, OTHER, REQUESTED_MEDIUM, data, size), "a request"); break;
    default: check(AM_RequestXfer0(endpoint, OTHER, place, REQUESTED_LONG, data, size), "a request");
  }
}

static void peer_reply(void *token, const char *data) {
  if (session.order.category == SHORT) {
#define REPLY(N) check(APPLY(AM_Reply##N, token, REPLIED + number_of(N) GIVEN_##N(int)), "a reply")
    FOR_ARGUMENTS(REPLY)
  } else {
    check(AM_ReplyI0(token, REPLIED_MEDIUM, data, session.order.size), "a reply");
  }
}

static void peer_ask(void) { check(AM_Request0(endpoint, OTHER, ASKED), "a request"); }
static void peer_answer(void *token) { check(AM_Reply0(token, ANSWERED), "a reply"); }
static void peer_progress(void) { check(AM_Poll(bundle), "polling"); }
/* Requests return when the data may change. */
static void peer_free(uint64_t sent) { (void)sent; }

/* The receiver answers all of them. */
static void peer_settle(void) {
  int outstanding = 0;
  do {
    peer_progress();
    check(AMX_GetOutstanding(endpoint, &outstanding), "asking what is outstanding");
  } while (outstanding > 0);
}

#define SHORT_HANDLERS(N) \
  static void requested_##N(void *token PARAMETERS_##N(int)) { active_requested(token, MESSAGE_##N); } \
  static void replied_##N(void *token UNUSED PARAMETERS_##N(int)) { active_replied(MESSAGE_##N); }
SHORT_HANDLERS(0)
SHORT_HANDLERS(4)
SHORT_HANDLERS(8)
SHORT_HANDLERS(16)

static void requested_data(void *token, void *data, size_t bytes) { active_requested(token, MESSAGE_OF(data, bytes)); }
static void replied_data(void *token UNUSED, void *data, size_t bytes) { active_replied(MESSAGE_OF(data, bytes)); }
static void asked(void *token) { active_asked(token); }
static void answered(void *token UNUSED) { active_answered(); }
static void returned(int status, op_t operation, void *token UNUSED) {
  fail("message %d came back with status %d", operation, status);
}

static void set_handlers(void) {
#define SET(number, function) check(AM_SetHandler(endpoint, number, (AMX_handler_fn_t)function), "a handler")
#define SET_SHORT(N) SET(REQUESTED + number_of(N), requested_##N), SET(REPLIED + number_of(N), replied_##N)
  SET_SHORT(0);
  SET_SHORT(4);
  SET_SHORT(8);
  SET_SHORT(16);
  SET(REQUESTED_MEDIUM, requested_data);
  SET(REPLIED_MEDIUM, replied_data);
  SET(REQUESTED_LONG, requested_data);
  SET(ASKED, asked);
  SET(ANSWERED, answered);
  SET(0, returned);
}

int main(int count, char **arguments) {
  session_open(count, arguments, -1, true);
  en_t name, theirs;
  check(AM_Init(), "starting");
  check(AM_AllocateBundle(AM_SEQ, &bundle), "a bundle");
  check(AM_AllocateEndpoint(bundle, &endpoint, &name), "an endpoint");
  check(AM_SetTag(endpoint, TAG), "its tag");
  check(AM_SetSeg(endpoint, region(ACTIVE_SEGMENT_BYTES), ACTIVE_SEGMENT_BYTES), "its segment");
  set_handlers();
  publish(session.role == RECEIVER ? "name.0" : "name.1", &name, sizeof name);
  if (awaited(session.role == RECEIVER ? "name.1" : "name.0", &theirs, sizeof theirs) != sizeof theirs) fail("half a name");
  check(AM_Map(endpoint, OTHER, theirs, TAG), "the other's name");
  active_figures();
  check(AM_Terminate(), "ending");
  return 0;
}
