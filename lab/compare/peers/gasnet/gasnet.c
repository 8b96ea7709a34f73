/* GASNet-EX: its Active Messages, over the conduit that it was compiled for. It makes both
 * processes from one: the smp conduit by fork, the udp conduit by a command. */
#include <gasnetex.h>

#include "../harness/active.h"

enum {
  FIRST = GEX_AM_INDEX_BASE,
  /* Requests and replies of 0, 4, 8 and 16 arguments. */
  REQUESTED = FIRST,
  REPLIED = REQUESTED + 4,
  REQUESTED_MEDIUM = REPLIED + 4,
  REPLIED_MEDIUM,
  REQUESTED_LONG,
  ASKED,
  ANSWERED,
};

static gex_TM_t team;
static gex_Rank_t other;
static char *segment;

#ifdef GASNET_CONDUIT_SMP
/* Debian's library can have its processes started by MPI, too, which is not linked. */
extern int gasneti_bootstrapInit_mpi(void);
int gasneti_bootstrapInit_mpi(void) { return GASNET_ERR_NOT_INIT; }
#endif

static void check(int result, const char *what) {
  if (result != GASNET_OK) fail("%s: %s", what, gasnet_ErrorDesc(result));
}

static const char *peer_supports(const struct order *order) {
  if (order->latency && order->category == LONG) return "round trips of long messages are not measured";
  if (order->category == MEDIUM && (order->size > gex_AM_LUBRequestMedium() || order->size > gex_AM_LUBReplyMedium()))
    return "longer than a medium message";
  if (order->category == LONG && order->size > gex_AM_LUBRequestLong()) return "longer than a long message";
  return NULL;
}

static void peer_request(const char *data, size_t place) {
  size_t size = session.order.size;
  switch (session.order.category) {
    case SHORT:
#define REQUEST(N) \
  check(APPLY(gex_AM_RequestShort##N, team, other, REQUESTED + number_of(N), 0 GIVEN_##N(gex_AM_Arg_t)), "a request")
      FOR_ARGUMENTS(REQUEST)
      break;
    case MEDIUM:
      check(gex_AM_RequestMedium0(team, other, REQUESTED_MEDIUM, (void *)data, size, GEX_EVENT_NOW, 0), "a request");
      break;
    default:
      check(gex_AM_RequestLong0(team, other, REQUESTED_LONG, (void *)data, size, segment + place, GEX_EVENT_NOW, 0),
            "a request");
  }
}

static void peer_reply(void *token, const char *data) {
  if (session.order.category == SHORT) {
#define REPLY(N) check(APPLY(gex_AM_ReplyShort##N, token, REPLIED + number_of(N), 0 GIVEN_##N(gex_AM_Arg_t)), "a reply")
    FOR_ARGUMENTS(REPLY)
  } else {
    check(gex_AM_ReplyMedium0(token, REPLIED_MEDIUM, (void *)data, session.order.size, GEX_EVENT_NOW, 0), "a reply");
  }
}

static void peer_ask(void) { check(gex_AM_RequestShort0(team, other, ASKED, 0), "a request"); }
static void peer_answer(void *token) { check(gex_AM_ReplyShort0(token, ANSWERED, 0), "a reply"); }
static void peer_progress(void) { gasnet_AMPoll(); }
/* Calls with GEX_EVENT_NOW return when the data may change. */
static void peer_free(uint64_t sent) { (void)sent; }
static void peer_settle(void) {}

#define SHORT_HANDLERS(N) \
  static void requested_##N(gex_Token_t token PARAMETERS_##N(gex_AM_Arg_t)) { active_requested(token, MESSAGE_##N); } \
  static void replied_##N(gex_Token_t token UNUSED PARAMETERS_##N(gex_AM_Arg_t)) { active_replied(MESSAGE_##N); }
SHORT_HANDLERS(0)
SHORT_HANDLERS(4)
SHORT_HANDLERS(8)
SHORT_HANDLERS(16)

static void requested_data(gex_Token_t token, void *data, size_t bytes) { active_requested(token, MESSAGE_OF(data, bytes)); }
static void replied_data(gex_Token_t token UNUSED, void *data, size_t bytes) { active_replied(MESSAGE_OF(data, bytes)); }
static void asked(gex_Token_t token) { active_asked(token); }
static void answered(gex_Token_t token UNUSED) { active_answered(); }

#define ENTRY(index, function, kind, arguments) \
  {(gex_AM_Index_t)(index), (gex_AM_Fn_t)(function), kind, arguments, NULL, #function}
#define SHORT_ENTRIES(N) \
  ENTRY(REQUESTED + number_of(N), requested_##N, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, N), \
      ENTRY(REPLIED + number_of(N), replied_##N, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, N)

int main(int count, char **arguments) {
  gex_Client_t client;
  gex_EP_t endpoint;
  check(gex_Client_Init(&client, &endpoint, &team, "compare", &count, &arguments, 0), "starting");
  session_open(count, arguments, (int)gex_TM_QueryRank(team), true);
  if (gex_TM_QuerySize(team) != 2) fail("%u processes", gex_TM_QuerySize(team));
  other = 1 - gex_TM_QueryRank(team);
  gex_AM_Entry_t entries[] = {
      SHORT_ENTRIES(0),
      SHORT_ENTRIES(4),
      SHORT_ENTRIES(8),
      SHORT_ENTRIES(16),
      ENTRY(REQUESTED_MEDIUM, requested_data, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0),
      ENTRY(REPLIED_MEDIUM, replied_data, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0),
      ENTRY(REQUESTED_LONG, requested_data, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0),
      ENTRY(ASKED, asked, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
      ENTRY(ANSWERED, answered, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0),
  };
  check(gex_EP_RegisterHandlers(endpoint, entries, sizeof entries / sizeof *entries), "the handlers");
  gex_Segment_t own;
  check(gex_Segment_Attach(&own, team, ACTIVE_SEGMENT_BYTES), "the segment");
  memset(gex_Segment_QueryAddr(own), 1, ACTIVE_SEGMENT_BYTES);
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, other, (void **)&segment, NULL, NULL, 0));
  gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
  active_figures();
  gasnet_exit(0);
  return 0;
}
