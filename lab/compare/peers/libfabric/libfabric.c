/* libfabric's shm provider, or between hosts its tcp provider: reliable datagram endpoints, tagged messages, polled completion queues. */
#include "../harness/session.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define WINDOW_MAX 64
#define WINDOW_BYTES ((size_t)256 << 10)
#define TAG 7
#define NAME_BYTES 512
#define DEPTH 1024

static inline size_t window_of(size_t size) {
  size_t window = WINDOW_BYTES / size;
  return window < 2 ? 2 : window > WINDOW_MAX ? WINDOW_MAX : window;
}
#define PEER_BUFFERS(size) window_of(size)

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *addresses;
static struct fid_cq *sent_queue, *received_queue;
static struct fid_ep *endpoint;
static fi_addr_t other;
/* Sends that are not complete; receives that are posted, complete, and handed out. */
static uint64_t sending, to_post, posted, arrived, handed;
static size_t inject_bytes;

static void check(long result, const char *what) {
  if (result < 0) fail("%s: %s", what, fi_strerror((int)-result));
}

static const char *peer_supports(const struct order *order) {
  to_post = order->count;
  posted = arrived = handed = 0;
  return order->senders > 1 ? "one sender" : NULL;
}

static inline uint64_t completions(struct fid_cq *queue) {
  struct fi_cq_entry entries[16];
  ssize_t found = fi_cq_read(queue, entries, 16);
  if (found == -FI_EAGAIN) return 0;
  if (found == -FI_EAVAIL) {
    struct fi_cq_err_entry error = {0};
    fi_cq_readerr(queue, &error, 0);
    fail("a completion with an error: %s", fi_strerror(error.err));
  }
  check(found, "reading a completion queue");
  return (uint64_t)found;
}

/* Reception goes on while a send waits. */
static inline void progress(void) {
  sending -= completions(sent_queue);
  arrived += completions(received_queue);
}

static inline void peer_send(const char *data, size_t size) {
  ssize_t result;
  if (size <= inject_bytes) {
    while ((result = fi_tinject(endpoint, data, size, other, TAG)) == -FI_EAGAIN) progress();
    check(result, "sending");
    return;
  }
  while ((result = fi_tsend(endpoint, data, size, NULL, other, TAG, NULL)) == -FI_EAGAIN) progress();
  check(result, "sending");
  sending++;
  /* The next message is stamped in the buffer of the first of these. */
  size_t window = session.order.latency ? 1 : window_of(size);
  if (sending >= window)
    while (sending > 0) progress();
}

static inline void post(char *into, size_t size) {
  ssize_t result;
  while ((result = fi_trecv(endpoint, into, size, NULL, other, TAG, 0, NULL)) == -FI_EAGAIN) progress();
  check(result, "posting a receive");
  posted++;
}

static inline char *peer_receive(char *into, size_t size) {
  static char *places[WINDOW_MAX];
  size_t window = session.order.latency ? 1 : window_of(size);
  if (handed == posted) {
    size_t room = session.order.fresh ? REGION_BYTES / size * size : size * window;
    for (size_t at = 0; at < window && to_post > 0; at++, to_post--) {
      places[at] = session.target + ((size_t)(into - session.target) + at * size) % room;
      post(places[at], size);
    }
  }
  while (arrived == handed) progress();
  return places[handed++ % window];
}

static void peer_settle(void) {
  while (sending > 0) progress();
}

#include "../harness/figures.h"

static void open_endpoint(void) {
  struct fi_info *hints = fi_allocinfo();
  if (!hints) fail("no memory");
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_TAGGED | FI_MSG;
  hints->mode = FI_CONTEXT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  bool is_tcp = strcmp(session.variant, "tcp") == 0;
  hints->fabric_attr->prov_name = strdup(is_tcp ? "tcp;ofi_rxm" : "shm");
  const char *own = is_tcp ? getenv("COMPARE_OWN") : NULL;
  if (is_tcp && !own) fail("no COMPARE_OWN");
  check(fi_getinfo(FI_VERSION(1, 14), own, NULL, own ? FI_SOURCE : 0, hints, &info), "looking for the provider");
  inject_bytes = info->tx_attr->inject_size;
  check(fi_fabric(info->fabric_attr, &fabric, NULL), "the fabric");
  check(fi_domain(fabric, info, &domain, NULL), "the domain");
  struct fi_av_attr address_attributes = {.type = FI_AV_TABLE, .count = 2};
  check(fi_av_open(domain, &address_attributes, &addresses, NULL), "the addresses");
  struct fi_cq_attr queue_attributes = {.size = DEPTH, .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
  check(fi_cq_open(domain, &queue_attributes, &sent_queue, NULL), "a completion queue");
  check(fi_cq_open(domain, &queue_attributes, &received_queue, NULL), "a completion queue");
  check(fi_endpoint(domain, info, &endpoint, NULL), "the endpoint");
  check(fi_ep_bind(endpoint, &addresses->fid, 0), "binding");
  check(fi_ep_bind(endpoint, &sent_queue->fid, FI_TRANSMIT), "binding");
  check(fi_ep_bind(endpoint, &received_queue->fid, FI_RECV), "binding");
  check(fi_enable(endpoint), "enabling");
  fi_freeinfo(hints);
}

int main(int count, char **arguments) {
  session_open(count, arguments, -1, true);
  open_endpoint();
  char name[NAME_BYTES] = {0}, theirs[NAME_BYTES] = {0};
  size_t length = sizeof name;
  check(fi_getname(&endpoint->fid, name, &length), "its name");
  publish(session.role == RECEIVER ? "name.0" : "name.1", name, length);
  awaited(session.role == RECEIVER ? "name.1" : "name.0", theirs, sizeof theirs);
  check(fi_av_insert(addresses, theirs, 1, &other, 0, NULL) == 1 ? 0 : -FI_EINVAL, "the other's address");
  figures();
  fi_close(&endpoint->fid);
  fi_close(&sent_queue->fid);
  fi_close(&received_queue->fid);
  fi_close(&addresses->fid);
  fi_close(&domain->fid);
  fi_close(&fabric->fid);
  fi_freeinfo(info);
  return 0;
}
