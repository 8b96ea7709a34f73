/* nng over ipc: pair0 where there is one sender, as in nng's own perf programs, and push0 and pull0 where there are several. Calls
 * block. */
#include "../harness/session.h"

#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>

/* Messages in the queue of a socket, at most, and what they have together. */
#define BUFFERED_MESSAGES 1000
#define BUFFERED_BYTES ((size_t)16 << 20)

static nng_socket pair, flow;

static void buffer(nng_socket socket, size_t size) {
  size_t messages = BUFFERED_BYTES / size;
  int depth = messages < 1 ? 1 : messages > BUFFERED_MESSAGES ? BUFFERED_MESSAGES : (int)messages;
  /* Not every protocol has both queues. */
  (void)nng_socket_set_int(socket, NNG_OPT_SENDBUF, depth);
  (void)nng_socket_set_int(socket, NNG_OPT_RECVBUF, depth);
}

static inline nng_socket way_of(void) { return session.senders == 1 || session.order.latency ? pair : flow; }

static const char *peer_supports(const struct order *order) {
  buffer(way_of(), order->size);
  return NULL;
}

static void check(int result, const char *what) {
  if (result != 0) fail("%s: %s", what, nng_strerror(result));
}

static inline void peer_send(const char *data, size_t size) {
  nng_msg *message;
  check(nng_msg_alloc(&message, size), "a message");
  memcpy(nng_msg_body(message), data, size);
  check(nng_sendmsg(way_of(), message, 0), "sending");
}

static inline char *peer_receive(char *into, size_t size) {
  nng_msg *message;
  check(nng_recvmsg(way_of(), &message, 0), "receiving");
  if (nng_msg_len(message) != size) fail("%zu bytes instead of %zu", nng_msg_len(message), size);
  memcpy(into, nng_msg_body(message), size);
  nng_msg_free(message);
  return into;
}

static void peer_settle(void) {}

#include "../harness/figures.h"

static void join(nng_socket socket, const char *name) {
  char path[256], address[300];
  path_of(path, sizeof path, name);
  snprintf(address, sizeof address, "ipc://%s", path);
  check(nng_socket_set_size(socket, NNG_OPT_RECVMAXSZ, 0), "the size limit");
  check(session.role == RECEIVER ? nng_listen(socket, address, NULL, 0) : nng_dial(socket, address, NULL, 0), address);
}

int main(int count, char **arguments) {
  session_open(count, arguments, -1, false);
  check(session.role == RECEIVER ? nng_pull0_open(&flow) : nng_push0_open(&flow), "a socket");
  if (session.role <= 1) check(nng_pair0_open(&pair), "a socket");
  if (session.role == RECEIVER) {
    join(pair, "pair");
    join(flow, "flow");
    publish("listening", "", 1);
  } else {
    char none;
    awaited("listening", &none, 1);
    if (session.role == 1) join(pair, "pair");
    join(flow, "flow");
  }
  figures();
  nng_close(flow);
  if (session.role <= 1) nng_close(pair);
  return 0;
}
