/* One-sided operations, measured in the same way for each library. The program is started as N processes, with one argument: how many
 * milliseconds each figure lasts. With two processes, the first operates on memory of the second, which waits in a barrier; with
 * any number, all add to one word of the first. The first prints a line for each figure: its name, bytes, nanoseconds for one operation.
 *
 * Before this file is included, a peer defines `me` and `procs`, and
 *   peer_read(size), peer_write(size)     one operation, complete when it returns
 *   peer_stream(size, count)              so many writes; all complete when it returns
 *   peer_add()                            adds 1 to the word of process 0, and returns what it was
 *   peer_sum()                            what the word is (process 0 only)
 *   peer_barrier(), peer_broadcast(&x)    of all; of a long from process 0
 *   peer_check(size)                      whether what was read is what was written
 * Programs follow: programs.h says what they need. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES_MAX ((size_t)65536)
#define WINDOW 64
/* Words of each process's part of what all share: half of the greatest table. */
#define PEER_WORDS ((size_t)4194304 / 8 / 2 + 64)

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static void fail(const char *why) {
  fprintf(stderr, "error: %s\n", why);
  exit(1);
}

enum kind { READ, WRITE, STREAM };

static void operate(enum kind kind, size_t size, long count) {
  switch (kind) {
  case READ:
    for (long i = 0; i < count; i++) peer_read(size);
    break;
  case WRITE:
    for (long i = 0; i < count; i++) peer_write(size);
    break;
  case STREAM:
    peer_stream(size, count);
  }
}

static double timed(enum kind kind, size_t size, long count) {
  double begun = now_ns();
  operate(kind, size, count);
  return now_ns() - begun;
}

/* By process 0 alone. */
static void figure(const char *name, enum kind kind, size_t size, double lasts_ns) {
  long count = WINDOW;
  double took;
  while ((took = timed(kind, size, count)) < lasts_ns / 8) count *= 2;
  count = (long)((double)count * lasts_ns / took) + 1;
  took = timed(kind, size, count);
  printf("%s %zu %.3f\n", name, size, took / (double)count);
}

/* By all. */
static void additions(double lasts_ns) {
  long count = 64, all = 0;
  double took = 0;
  for (bool is_last = false;; is_last = took >= lasts_ns / 4) {
    if (is_last) count = (long)((double)count * lasts_ns / took) + 1;
    else if (all > 0) count *= 2;
    peer_broadcast(&count);
    peer_barrier();
    double begun = now_ns();
    for (long i = 0; i < count; i++) peer_add();
    peer_barrier();
    took = now_ns() - begun;
    all += count * procs;
    if (me == 0 && peer_sum() != all) fail("an addition was lost");
    long goes_on = !is_last;
    peer_broadcast(&goes_on);
    if (!goes_on) break;
    /* The clock of process 0 decides. */
    long is_long = took >= lasts_ns / 4;
    peer_broadcast(&is_long);
    if (me != 0) took = is_long ? lasts_ns : 0;
  }
  if (me == 0) printf("add 8 %.3f\n", took / ((double)count * procs));
}

#include "programs.h"

static void figures(int count, char **arguments) {
  static const size_t sizes[] = {4, 8, 64, 1024, 65536};
  if (count != 2 || atof(arguments[1]) <= 0) fail("usage: PROGRAM MILLISECONDS");
  double lasts_ns = 1e6 * atof(arguments[1]);
  peer_barrier();
  for (size_t i = 0; procs == 2 && i < sizeof sizes / sizeof *sizes; i++) {
    if (me == 0) {
      figure("write", WRITE, sizes[i], lasts_ns);
      figure("read", READ, sizes[i], lasts_ns);
      if (!peer_check(sizes[i])) fail("what was read is not what was written");
      figure("stream", STREAM, sizes[i], lasts_ns);
    }
    peer_barrier();
  }
  additions(lasts_ns);
  programs(lasts_ns);
}
