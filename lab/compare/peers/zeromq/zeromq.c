/* ZeroMQ over ipc, or between hosts over tcp: PAIR sockets for round trips, PUSH and PULL for streams. Calls block, as in ZeroMQ's
 * own local_lat and remote_thr. */
#include "../harness/session.h"

#include <zmq.h>

/* Messages queued at most, at each end, so that a stream is not just put into memory. */
#define HIGH_WATER_MARK 1000
/* Of the receiver's host, which nobody else uses. */
#define PAIR_PORT 7501
#define FLOW_PORT 7502

static void *context, *pair, *flow;

static const char *peer_supports(const struct order *order) {
  (void)order;
  return NULL;
}

static inline void peer_send(const char *data, size_t size) {
  while (zmq_send(session.order.latency ? pair : flow, data, size, 0) < 0)
    if (errno != EINTR) fail("sending: %s", zmq_strerror(errno));
}

/* Copied out: what ZeroMQ hands over lies in a buffer of its own. */
static inline char *peer_receive(char *into, size_t size) {
  int length;
  while ((length = zmq_recv(session.order.latency ? pair : flow, into, size, 0)) < 0)
    if (errno != EINTR) fail("receiving: %s", zmq_strerror(errno));
  if ((size_t)length != size) fail("%d bytes instead of %zu", length, size);
  return into;
}

static void peer_settle(void) {}

#include "../harness/figures.h"

static void *socket_of(int type, const char *name) {
  void *socket = zmq_socket(context, type);
  int mark = HIGH_WATER_MARK, linger = 0;
  zmq_setsockopt(socket, ZMQ_SNDHWM, &mark, sizeof mark);
  zmq_setsockopt(socket, ZMQ_RCVHWM, &mark, sizeof mark);
  zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
  char path[256], address[300];
  if (strcmp(session.variant, "tcp") == 0) {
    const char *receiver = getenv("COMPARE_RECEIVER");
    if (!receiver) fail("no COMPARE_RECEIVER");
    snprintf(address, sizeof address, "tcp://%s:%d", receiver, strcmp(name, "pair") == 0 ? PAIR_PORT : FLOW_PORT);
  } else {
    path_of(path, sizeof path, name);
    snprintf(address, sizeof address, "ipc://%s", path);
  }
  int result = session.role == RECEIVER ? zmq_bind(socket, address) : zmq_connect(socket, address);
  if (result != 0) fail("%s: %s", address, zmq_strerror(errno));
  return socket;
}

int main(int count, char **arguments) {
  session_open(count, arguments, -1, false);
  context = zmq_ctx_new();
  if (session.role <= 1) pair = socket_of(ZMQ_PAIR, "pair");
  flow = socket_of(session.role == RECEIVER ? ZMQ_PULL : ZMQ_PUSH, "flow");
  figures();
  zmq_close(flow);
  if (pair) zmq_close(pair);
  zmq_ctx_term(context);
  return 0;
}
