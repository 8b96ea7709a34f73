/* What the machine itself can do: 16 bytes and a flag handed over in one cache line, and one copy into
 * memory of the other process with a flag. No message can be faster. */
#include "../harness/session.h"

#include <stdatomic.h>

#define LINE_BYTES 64

struct line {
  _Alignas(128) _Atomic uint64_t flag;
  uint64_t words[2];
};

/* In a file that both map. */
struct ground {
  struct line there, back;
  struct line sent, taken;
};

#define BUFFERS 2
#define BUFFERS_OFFSET ((size_t)1 << 20)

static struct ground *ground;
static char *buffers;
static uint64_t sent, received, turn;

static const char *peer_supports(const struct order *order) {
  if (order->latency && order->size != 16) return "the hand-off is of 16 bytes";
  if (!order->latency && order->size < 4096) return "a copy is of 4 KiB or more";
  return order->senders > 1 ? "one sender" : NULL;
}

static inline void hand_over(struct line *line, const void *data) {
  memcpy(line->words, data, 16);
  atomic_store_explicit(&line->flag, ++turn, memory_order_release);
}

static inline void peer_send(const void *data, size_t size) {
  if (session.order.latency) {
    hand_over(session.role == RECEIVER ? &ground->back : &ground->there, data);
    return;
  }
  while (sent - atomic_load_explicit(&ground->taken.flag, memory_order_acquire) >= BUFFERS) pause_processor();
  memcpy(buffers + sent % BUFFERS * MESSAGE_BYTES_MAX, data, size);
  atomic_store_explicit(&ground->sent.flag, ++sent, memory_order_release);
}

static inline char *peer_receive(char *into, size_t size) {
  (void)size;
  if (session.order.latency) {
    struct line *line = session.role == RECEIVER ? &ground->there : &ground->back;
    uint64_t awaited = session.role == RECEIVER ? turn + 1 : turn;
    while (atomic_load_explicit(&line->flag, memory_order_acquire) != awaited)
      ;
    memcpy(into, line->words, 16);
    return into;
  }
  /* What was returned by the last call is given back by this one. */
  atomic_store_explicit(&ground->taken.flag, received, memory_order_release);
  while (atomic_load_explicit(&ground->sent.flag, memory_order_acquire) <= received) pause_processor();
  return buffers + received++ % BUFFERS * MESSAGE_BYTES_MAX;
}

static void peer_settle(void) {
  if (!session.order.latency && session.role == RECEIVER)
    atomic_store_explicit(&ground->taken.flag, received, memory_order_release);
}

#include "../harness/figures.h"

int main(int count, char **arguments) {
  session_open(count, arguments, -1, true);
  char path[256];
  path_of(path, sizeof path, "ground");
  size_t bytes = BUFFERS_OFFSET + BUFFERS * MESSAGE_BYTES_MAX;
  int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) fail("the shared file: %s", strerror(errno));
  char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  if (memory == MAP_FAILED) fail("mapping: %s", strerror(errno));
  ground = (struct ground *)memory;
  buffers = memory + BUFFERS_OFFSET;
  figures();
  return 0;
}
