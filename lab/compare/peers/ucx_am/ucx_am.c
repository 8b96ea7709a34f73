/* UCX: active messages with handlers of ours. Arguments, and the place of a long message, are the
 * message's header. */
#include "../harness/active.h"

#include <ucp/api/ucp.h>

enum { REQUESTED, REPLIED, REQUESTED_LONG, ASKED, ANSWERED, HANDLERS };

static ucp_worker_h worker;
static ucp_ep_h other;
/* Messages that were sent and may still be read, and all. */
static uint64_t sending, sent;
/* Messages that were fetched. */
static uint64_t fetched;
static char *segment;
/* Room for each message that may still be read. */
static uint32_t headers[ACTIVE_BUFFERS_MAX][ARGUMENTS_MAX];

static void check(ucs_status_t status, const char *what) {
  if (status != UCS_OK) fail("%s: %s", what, ucs_status_string(status));
}

static const char *peer_supports(const struct order *order) {
  if (order->latency && order->category == LONG) return "round trips of long messages are not measured";
  return NULL;
}

static void peer_progress(void) { ucp_worker_progress(worker); }

static void has_left(void *request, ucs_status_t status, void *data UNUSED) {
  if (status != UCS_OK) fail("sending: %s", ucs_status_string(status));
  ucp_request_free(request);
  sending--;
}

static void send_one(unsigned handler, const void *header, size_t header_bytes, const void *data, size_t bytes) {
  ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = has_left};
  ucs_status_ptr_t result = ucp_am_send_nbx(other, handler, header, header_bytes, data, bytes, &param);
  if (UCS_PTR_IS_ERR(result)) fail("sending: %s", ucs_status_string(UCS_PTR_STATUS(result)));
  if (result) sending++;
}

/* Not in a handler, which must not wait; there, one message is answered after the other. */
static void peer_free(uint64_t turn) {
  if (turn % active.buffers == 0)
    while (sending > 0) peer_progress();
}

static void peer_settle(void) {
  while (sending > 0) peer_progress();
}

static void send_like_order(unsigned handler, const char *data, size_t place) {
  const struct order *order = &session.order;
  uint32_t *header = headers[sent++ % active.buffers];
  if (order->category == SHORT) {
    memcpy(header, active.arguments, order->size * sizeof *header);
    send_one(handler, header, order->size * sizeof *header, NULL, 0);
  } else if (order->category == MEDIUM) {
    send_one(handler, NULL, 0, data, order->size);
  } else {
    uint64_t at = place;
    memcpy(header, &at, sizeof at);
    send_one(handler, header, sizeof at, data, order->size);
  }
}

static void peer_request(const char *data, size_t place) {
  send_like_order(session.order.category == LONG ? REQUESTED_LONG : REQUESTED, data, place);
}
static void peer_reply(void *token UNUSED, const char *data) { send_like_order(REPLIED, data, 0); }
static void peer_ask(void) { send_one(ASKED, NULL, 0, NULL, 0); }
static void peer_answer(void *token UNUSED) { send_one(ANSWERED, NULL, 0, NULL, 0); }

static void run(unsigned handler, struct message message) {
  if (handler == REPLIED)
    active_replied(message);
  else
    active_requested(NULL, message);
}

static void is_there(void *request, ucs_status_t status, size_t bytes, void *place) {
  if (status != UCS_OK) fail("receiving: %s", ucs_status_string(status));
  run(session.role == RECEIVER ? REQUESTED : REPLIED, MESSAGE_OF(place, bytes));
  ucp_request_free(request);
}

/* Has the data of a rendezvous put there; the handler runs when they are. */
static ucs_status_t fetch(unsigned handler, void *data, size_t bytes, char *place) {
  ucp_request_param_t param = {
      .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
      .cb.recv_am = is_there,
      .user_data = place,
  };
  ucs_status_ptr_t result = ucp_am_recv_data_nbx(worker, data, place, bytes, &param);
  if (UCS_PTR_IS_ERR(result)) fail("receiving: %s", ucs_status_string(UCS_PTR_STATUS(result)));
  if (!result) run(handler, MESSAGE_OF(place, bytes));
  return UCS_INPROGRESS;
}

static ucs_status_t handle(void *arg, const void *header, size_t header_bytes, void *data, size_t bytes,
                           const ucp_am_recv_param_t *param) {
  unsigned handler = (unsigned)(uintptr_t)arg;
  bool is_apart = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV;
  uint64_t place = 0;
  switch (handler) {
    case REQUESTED_LONG:
      if (header_bytes != sizeof place) fail("a header of %zu bytes", header_bytes);
      memcpy(&place, header, sizeof place);
      if (place > ACTIVE_SEGMENT_BYTES || bytes > ACTIVE_SEGMENT_BYTES - place) fail("a place outside of the segment");
      if (is_apart) return fetch(handler, data, bytes, segment + place);
      memcpy(segment + place, data, bytes);
      run(handler, MESSAGE_OF(segment + place, bytes));
      break;
    case ASKED: active_asked(NULL); break;
    case ANSWERED: active_answered(); break;
    default:
      if (is_apart) {
        if (bytes * active.buffers > ACTIVE_SEGMENT_BYTES) fail("%zu bytes", bytes);
        return fetch(handler, data, bytes, segment + fetched++ % active.buffers * bytes);
      }
      const uint32_t *arguments = header;
      size_t count = header_bytes / sizeof *arguments;
      struct message message = MESSAGE_OF(data, bytes);
      if (count) message.first = arguments[0], message.last = arguments[count - 1];
      run(handler, message);
  }
  return UCS_OK;
}

static void open_worker(void) {
  ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM};
  ucp_config_t *config;
  ucp_context_h context;
  check(ucp_config_read(NULL, NULL, &config), "the configuration");
  check(ucp_init(&params, config, &context), "starting");
  ucp_config_release(config);
  ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SINGLE};
  check(ucp_worker_create(context, &single, &worker), "a worker");
  for (unsigned handler = 0; handler < HANDLERS; handler++) {
    ucp_am_handler_param_t entry = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = handler,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = handle,
        .arg = (void *)(uintptr_t)handler,
    };
    check(ucp_worker_set_am_recv_handler(worker, &entry), "a handler");
  }
}

int main(int count, char **arguments) {
  session_open(count, arguments, -1, true);
  segment = region(ACTIVE_SEGMENT_BYTES);
  open_worker();
  ucp_address_t *address;
  size_t length;
  char theirs[4096];
  check(ucp_worker_get_address(worker, &address, &length), "its address");
  publish(session.role == RECEIVER ? "name.0" : "name.1", address, length);
  ucp_worker_release_address(worker, address);
  awaited(session.role == RECEIVER ? "name.1" : "name.0", theirs, sizeof theirs);
  ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = (ucp_address_t *)theirs};
  check(ucp_ep_create(worker, &to, &other), "the endpoint");
  active_figures();
  /* The other may be gone already, so nothing is closed with its help. */
  return 0;
}
