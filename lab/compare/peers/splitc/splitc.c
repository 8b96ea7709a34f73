/* Split-C's blocking read and write, signaling stores that the target counts, and fetch-and-add, by the calls of splitc.h. */
#include <stddef.h>
#include <stdint.h>
#include "splitc.h"

static char shared[65536];
static long word;
static char from[65536], into[65536];
#define me MYPROC
#define procs PROCS

static inline splitc_global theirs(void) { return splitc_to_global(1, shared); }

static inline void peer_read(size_t size) {
  switch (size) {
  case 4: splitc_read(into, theirs(), 4, SPLITC_HERE); break;
  case 8: splitc_read(into, theirs(), 8, SPLITC_HERE); break;
  default: splitc_bulk_read(into, theirs(), size);
  }
}

static inline void peer_write(size_t size) {
  switch (size) {
  case 4: splitc_write(theirs(), from, 4, SPLITC_HERE); break;
  case 8: splitc_write(theirs(), from, 8, SPLITC_HERE); break;
  default: splitc_bulk_write(theirs(), from, size);
  }
}

static void peer_stream(size_t size, long count) {
  for (long i = 0; i < count; i++) splitc_bulk_store(theirs(), from, size);
  /* Stores complete at the target; a read is behind them. */
  char last;
  splitc_sync(SPLITC_HERE);
  splitc_read(&last, theirs(), 1, SPLITC_HERE);
}

static inline long peer_add(void) { return splitc_fetch_and_add_l(splitc_to_global(0, &word), 1, SPLITC_HERE); }
static long peer_sum(void) { return splitc_read_long(splitc_to_global(0, &word)); }
static void peer_barrier(void) { splitc_barrier(SPLITC_HERE); }
static void peer_broadcast(long *value) { *value = splitc_all_bcast_l(*value, SPLITC_HERE); }

static int peer_check(size_t size) {
  for (size_t i = 0; i < size; i++)
    if (into[i] != from[i]) return 0;
  return 1;
}

#define WORDS_MAX (4194304 / 8 / 2 + 64)
static uint64_t peer_words[WORDS_MAX];

static inline splitc_global word_of(int proc, uint64_t at) { return splitc_to_global(proc, peer_words + at); }
static inline uint64_t peer_read_word(int proc, uint64_t at) { return splitc_read_ulong(word_of(proc, at)); }
static inline uint64_t peer_add_word(int proc, uint64_t at, uint64_t value) {
  return (uint64_t)splitc_fetch_and_add_l(word_of(proc, at), (long)value, SPLITC_HERE);
}
static inline void peer_xor_word(int proc, uint64_t at, uint64_t value) { splitc_fetch_and_xor_l(word_of(proc, at), (long)value, SPLITC_HERE); }
static inline void peer_put_word(int proc, uint64_t at, uint64_t value) { splitc_put_ulong(word_of(proc, at), value); }
static void peer_complete(void) { splitc_sync(SPLITC_HERE); }

#include "../harness/one_sided.h"

_Static_assert(WORDS_MAX >= PEER_WORDS, "the words of the programs have room");

static int program(int count, char **arguments) {
  for (size_t i = 0; i < sizeof from; i++) from[i] = (char)(i * 7 + 1);
  figures(count, arguments);
  return 0;
}

SPLITC_MAIN(program)
