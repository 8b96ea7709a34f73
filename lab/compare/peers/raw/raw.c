/* What the machine itself can do: a few bytes and a flag handed over in one cache line; one copy into memory of the other
 * process with a flag in a line of its own, through the caches or past them. No message can be faster.
 * `hamlyn-lab bench` does the same with the same buffers (docs/performance.md, "One ceiling"). */
#include "../harness/session.h"

#include <stdatomic.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define LINE_BYTES 64

struct line {
  _Alignas(128) _Atomic uint64_t flag;
  char bytes[LINE_BYTES - 8];
};

#define FLAGS 1024

/* In a file that both map. */
struct ground {
  struct line there, back;
  struct line taken;
  struct {
    _Alignas(LINE_BYTES) _Atomic uint64_t flag;
  } sent[FLAGS];
};

#define BUFFERS_OFFSET ((size_t)1 << 20)
#define BUFFERS_BYTES (2 * MESSAGE_BYTES_MAX)
/* What buffers that are used again have together, if at least two and at most 64 do. */
#define REUSED_BYTES ((size_t)256 << 10)
/* What is on its way at a time. */
#define UNDER_WAY_BYTES ((size_t)4 << 20)

_Static_assert(sizeof(struct ground) <= BUFFERS_OFFSET && REGION_BYTES <= BUFFERS_BYTES, "no room");

static struct ground *ground;
static char *buffers;
static uint64_t sent, seen, received, given, turn;

static size_t clamped(size_t value, size_t least, size_t most) {
  return value < least ? least : value > most ? most : value;
}

/* What an order makes of the memory. */
static struct {
  size_t targets, under_way, batch;
  /* The next target. */
  size_t at;
} walked;

/* Called before each message; at the first one of an order, both sides begin anew. */
static void step(void) {
  if (session.remaining != session.order.count) return;
  size_t size = session.order.size;
  walked.targets = session.order.fresh ? REGION_BYTES / size : clamped(REUSED_BYTES / size, 2, 64);
  /* Nothing is stored over before it was taken. */
  walked.under_way = clamped(UNDER_WAY_BYTES / size, 2, FLAGS);
  if (walked.under_way > walked.targets) walked.under_way = walked.targets;
  walked.batch = clamped(walked.under_way / 8, 1, FLAGS);
  walked.at = 0;
}

static char *next_target(void) {
  char *target = buffers + walked.at * session.order.size;
  walked.at = walked.at + 1 < walked.targets ? walked.at + 1 : 0;
  return target;
}

/* How bytes are copied. Which way is fastest depends on the size and on where the processors are, so each is a variant. */
static enum { REGISTERS, LIBRARY, PAST } way;

static const char *peer_supports(const struct order *order) {
  if (way != REGISTERS && (order->latency || order->size < 4096)) return "a copy is of 4 KiB or more";
  return order->senders > 1 ? "one sender" : NULL;
}

/* In the widest registers, through the caches or past them; by the library where there are none. */
static void copy_in_registers(char *to, const char *from, size_t size, bool past) {
  size_t at = 0;
#if defined(__AVX512F__)
  for (; at + 64 <= size; at += 64) {
    __m512i bytes = _mm512_loadu_si512((const void *)(from + at));
    if (past)
      _mm512_stream_si512((void *)(to + at), bytes);
    else
      _mm512_store_si512((void *)(to + at), bytes);
  }
  if (past) _mm_sfence();
#elif defined(__AVX__)
  for (; at + 32 <= size; at += 32) {
    __m256i bytes = _mm256_loadu_si256((const __m256i *)(from + at));
    if (past)
      _mm256_stream_si256((__m256i *)(to + at), bytes);
    else
      _mm256_store_si256((__m256i *)(to + at), bytes);
  }
  if (past) _mm_sfence();
#endif
  (void)past;
  memcpy(to + at, from + at, size - at);
}

static inline void copy(char *to, const char *from, size_t size) {
  /* Registers want aligned targets. */
  if (way == LIBRARY || size % LINE_BYTES)
    memcpy(to, from, size);
  else
    copy_in_registers(to, from, size, way == PAST);
}

/* Of a message that does not fit the line of its flag, each direction has one buffer. */
static char *answered(bool back) { return buffers + (back ? MESSAGE_BYTES_MAX : 0); }

static void hand_over(bool back, const void *data, size_t size) {
  struct line *line = back ? &ground->back : &ground->there;
  if (size <= sizeof line->bytes)
    memcpy(line->bytes, data, size);
  else
    memcpy(answered(back), data, size);
  atomic_store_explicit(&line->flag, ++turn, memory_order_release);
}

static char *handed_over(bool back, uint64_t awaited, char *into, size_t size) {
  struct line *line = back ? &ground->back : &ground->there;
  while (atomic_load_explicit(&line->flag, memory_order_acquire) != awaited)
    ;
  if (size > sizeof line->bytes) return answered(back);
  memcpy(into, line->bytes, size);
  return into;
}

static inline void peer_send(const void *data, size_t size) {
  if (session.order.latency) {
    hand_over(session.role == RECEIVER, data, size);
    return;
  }
  step();
  while (sent - seen >= walked.under_way) {
    seen = atomic_load_explicit(&ground->taken.flag, memory_order_acquire);
    if (sent - seen >= walked.under_way) pause_processor();
  }
  copy(next_target(), data, size);
  atomic_store_explicit(&ground->sent[sent % FLAGS].flag, sent + 1, memory_order_release);
  sent++;
}

static inline char *peer_receive(char *into, size_t size) {
  if (session.order.latency) {
    bool back = session.role != RECEIVER;
    return handed_over(back, back ? turn : turn + 1, into, size);
  }
  /* What was returned before is given back by this call, several at a time if there are several. */
  step();
  if (received - given >= walked.batch)
    atomic_store_explicit(&ground->taken.flag, given = received, memory_order_release);
  while (atomic_load_explicit(&ground->sent[received % FLAGS].flag, memory_order_acquire) != received + 1)
    pause_processor();
  received++;
  return next_target();
}

static void peer_settle(void) {
  if (!session.order.latency && session.role == RECEIVER)
    atomic_store_explicit(&ground->taken.flag, given = received, memory_order_release);
}

#include "../harness/figures.h"

int main(int count, char **arguments) {
  session_open(count, arguments, -1, true);
  way = strcmp(session.variant, "past") == 0 ? PAST : strcmp(session.variant, "library") == 0 ? LIBRARY : REGISTERS;
  char path[256];
  path_of(path, sizeof path, "ground");
  size_t bytes = BUFFERS_OFFSET + BUFFERS_BYTES;
  int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) fail("the shared file: %s", strerror(errno));
  char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  if (memory == MAP_FAILED) fail("mapping: %s", strerror(errno));
  ground = (struct ground *)memory;
  buffers = memory + BUFFERS_OFFSET;
  figures();
  return 0;
}
