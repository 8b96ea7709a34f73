/* A peer program's side of the comparison: where it runs, what it is ordered to do, what it answers.
 * The protocol is described in lab/compare/README.md. */
#ifndef COMPARE_SESSION_H
#define COMPARE_SESSION_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  RECEIVER = 0,
  SENDERS_MAX = 64,
  /* A program that takes longer than this for one order is stuck, and ends itself. */
  ORDER_SECONDS_MAX = 60,
  OPENING_SECONDS_MAX = 20,
};

/* What "fresh" buffers walk through: several times the last cache. */
#define REGION_BYTES ((size_t)128 << 20)
/* The largest message. */
#define MESSAGE_BYTES_MAX ((size_t)64 << 20)

/* The load of an active message: arguments, data for the handler, data for a place. */
enum category { PLAIN, SHORT, MEDIUM, LONG };
static const char *const categories[] = {"", "short", "medium", "long"};
#define ARGUMENTS_MAX 16

struct order {
  bool latency;
  enum category category;
  /* Bytes; of a short active message, arguments. */
  size_t size;
  uint64_t count;
  /* Senders that take part; each sends `count` messages. */
  int senders;
  bool fresh;
};

struct session {
  const char *variant;
  const char *directory;
  /* 0 receives; 1 to `senders` send. */
  int role;
  int senders;
  int cores[2];
  FILE *orders;
  FILE *answers;
  struct order order;
  /* Messages of this order that are still to be sent or received. */
  uint64_t remaining;
  uint64_t turn[SENDERS_MAX + 1];
  char *source, *target;
};

static struct session session;

static void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
static void fail(const char *format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  for (char *at = text; *at; at++)
    if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ') *at = ' ';
  if (session.answers) {
    fprintf(session.answers, "{\"error\":\"%s\"}\n", text);
    fflush(session.answers);
  }
  fprintf(stderr, "%s role %d: %s\n", session.variant ? session.variant : "?", session.role, text);
  _exit(1);
}

static inline uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void path_of(char *into, size_t bytes, const char *name) {
  if ((size_t)snprintf(into, bytes, "%s/%s", session.directory, name) >= bytes) fail("a path too long");
}

/* Leaves bytes where the other processes of the session find them. */
__attribute__((unused)) static void publish(const char *name, const void *bytes, size_t length) {
  char path[256], draft[300];
  path_of(path, sizeof path, name);
  snprintf(draft, sizeof draft, "%s.draft", path);
  FILE *file = fopen(draft, "w");
  if (!file || fwrite(bytes, 1, length, file) != length || fclose(file) != 0 || rename(draft, path) != 0)
    fail("publishing %s: %s", name, strerror(errno));
}

/* Waits until another process has left them. */
__attribute__((unused)) static size_t awaited(const char *name, void *bytes, size_t length_max) {
  char path[256];
  path_of(path, sizeof path, name);
  for (uint64_t deadline = now_ns() + OPENING_SECONDS_MAX * 1000000000ull; now_ns() < deadline; usleep(500)) {
    FILE *file = fopen(path, "r");
    if (!file) continue;
    size_t length = fread(bytes, 1, length_max, file);
    fclose(file);
    return length;
  }
  fail("nobody published %s", name);
}

static void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail("staying on core %d: %s", core, strerror(errno));
}

/* Called with the arguments VARIANT DIRECTORY ROLE SENDERS RECEIVER_CORE SENDER_CORE. `rank` is the
 * role if a launcher gave it. A program with threads of its own that are needed for progress is not
 * pinned to one core: it has both, from its parent. */
static void session_open(int count, char **arguments, int rank, bool pinned) {
  if (count != 7) {
    fprintf(stderr, "usage: %s VARIANT DIRECTORY ROLE SENDERS RECEIVER_CORE SENDER_CORE\n", arguments[0]);
    exit(2);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  session.variant = arguments[1];
  session.directory = arguments[2];
  session.role = rank >= 0 ? rank : atoi(arguments[3]);
  session.senders = atoi(arguments[4]);
  session.cores[0] = atoi(arguments[5]);
  session.cores[1] = atoi(arguments[6]);
  if (session.senders < 1 || session.senders > SENDERS_MAX || session.role > session.senders) fail("bad arguments");
  char path[256], name[32];
  snprintf(name, sizeof name, "answers.%d", session.role);
  path_of(path, sizeof path, name);
  session.answers = fopen(path, "w");
  if (!session.answers) fail("opening %s: %s", path, strerror(errno));
  snprintf(name, sizeof name, "orders.%d", session.role);
  path_of(path, sizeof path, name);
  session.orders = fopen(path, "r");
  if (!session.orders) fail("opening %s: %s", path, strerror(errno));
  if (pinned) pin(session.cores[session.role == RECEIVER ? 0 : 1]);
  alarm(OPENING_SECONDS_MAX);
}

static void say(const char *text) {
  fprintf(session.answers, "%s\n", text);
  fflush(session.answers);
}

__attribute__((unused)) static void answer(uint64_t begin_ns, uint64_t end_ns, uint64_t checked) {
  fprintf(session.answers, "{\"begin_ns\":%llu,\"end_ns\":%llu,\"checked\":%llu}\n", (unsigned long long)begin_ns,
          (unsigned long long)end_ns, (unsigned long long)checked);
  fflush(session.answers);
}

__attribute__((unused)) static void answer_unsupported(const char *reason) {
  fprintf(session.answers, "{\"unsupported\":\"%s\"}\n", reason);
  fflush(session.answers);
}

/* The next order, or false when there will be none. */
static bool session_next(void) {
  char line[128], word[16], buffers[16];
  alarm(0);
  if (!fgets(line, sizeof line, session.orders)) return false;
  alarm(ORDER_SECONDS_MAX);
  unsigned long long size = 0, count = 0;
  int senders = 0;
  if (sscanf(line, "%15s %llu %llu %d %15s", word, &size, &count, &senders, buffers) != 5) return false;
  session.order = (struct order){
      .latency = strcmp(word, "latency") == 0,
      .size = size,
      .count = count,
      .senders = senders,
      .fresh = strcmp(buffers, "fresh") == 0,
  };
  for (enum category category = SHORT; category <= LONG; category++)
    if (strcmp(buffers, categories[category]) == 0) session.order.category = category;
  bool is_short = session.order.category == SHORT;
  size_t least = is_short ? 0 : 8, most = is_short ? ARGUMENTS_MAX : MESSAGE_BYTES_MAX;
  if (size < least || size > most || count < 1 || senders < 1 || senders > session.senders)
    fail("an order that is none: %s", line);
  return true;
}

static void *region(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("no memory: %s", strerror(errno));
  madvise(memory, bytes, MADV_HUGEPAGE);
  memset(memory, 1, bytes);
  return memory;
}

/* Every message carries its number, and its sender's, in its first and its last word. */
static inline uint64_t stamp_of(int sender, uint64_t turn) { return (uint64_t)sender << 48 | turn; }

static inline void stamp(char *data, size_t size, uint64_t value) {
  memcpy(data, &value, 8);
  memcpy(data + size - 8, &value, 8);
}

static inline bool is_stamped(const char *data, size_t size, uint64_t value) {
  uint64_t first, last;
  memcpy(&first, data, 8);
  memcpy(&last, data + size - 8, 8);
  return first == value && last == value;
}

static inline void pause_processor(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

#endif
