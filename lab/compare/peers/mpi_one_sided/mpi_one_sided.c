/* MPI's one-sided calls with a passive target: MPI_Get, MPI_Put and MPI_Fetch_and_op, each with MPI_Win_flush, under one
 * MPI_Win_lock_all. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

static int me, procs;
static MPI_Win window;
static char *own;
static char from[65536], into[65536];

static inline void peer_read(size_t size) {
  MPI_Get(into, (int)size, MPI_BYTE, 1, 0, (int)size, MPI_BYTE, window);
  MPI_Win_flush(1, window);
}

static inline void peer_write(size_t size) {
  MPI_Put(from, (int)size, MPI_BYTE, 1, 0, (int)size, MPI_BYTE, window);
  MPI_Win_flush(1, window);
}

static void peer_stream(size_t size, long count) {
  for (long i = 0; i < count; i++) {
    MPI_Put(from, (int)size, MPI_BYTE, 1, 0, (int)size, MPI_BYTE, window);
    if (i % 64 == 63) MPI_Win_flush_local(1, window);
  }
  MPI_Win_flush(1, window);
}

static inline long peer_add(void) {
  long one = 1, before;
  MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 65536, MPI_SUM, window);
  MPI_Win_flush(0, window);
  return before;
}

static long peer_sum(void) {
  long none = 0, sum;
  MPI_Fetch_and_op(&none, &sum, MPI_LONG, 0, 65536, MPI_NO_OP, window);
  MPI_Win_flush(0, window);
  return sum;
}

static void peer_barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }
static void peer_broadcast(long *value) { MPI_Bcast(value, 1, MPI_LONG, 0, MPI_COMM_WORLD); }

static int peer_check(size_t size) {
  for (size_t i = 0; i < size; i++)
    if (into[i] != from[i]) return 0;
  return 1;
}

/* The words of the programs, which have a window of their own. */
static MPI_Win words;
static uint64_t *peer_words;

static inline uint64_t peer_read_word(int proc, uint64_t at) {
  uint64_t word;
  MPI_Get(&word, 8, MPI_BYTE, proc, (MPI_Aint)(8 * at), 8, MPI_BYTE, words);
  MPI_Win_flush(proc, words);
  return word;
}

static inline uint64_t peer_add_word(int proc, uint64_t at, uint64_t value) {
  uint64_t before;
  MPI_Fetch_and_op(&value, &before, MPI_UINT64_T, proc, (MPI_Aint)(8 * at), MPI_SUM, words);
  MPI_Win_flush(proc, words);
  return before;
}

/* What is changed or put must stay as it is until it was sent: 64 may be on their way. */
static uint64_t on_their_way[64];
static unsigned changes;

static inline uint64_t *kept(uint64_t value) {
  if (changes == 64) {
    MPI_Win_flush_local_all(words);
    changes = 0;
  }
  on_their_way[changes] = value;
  return &on_their_way[changes++];
}

static inline void peer_xor_word(int proc, uint64_t at, uint64_t value) {
  MPI_Accumulate(kept(value), 1, MPI_UINT64_T, proc, (MPI_Aint)(8 * at), 1, MPI_UINT64_T, MPI_BXOR, words);
}

static inline void peer_put_word(int proc, uint64_t at, uint64_t value) {
  MPI_Put(kept(value), 8, MPI_BYTE, proc, (MPI_Aint)(8 * at), 8, MPI_BYTE, words);
}

static void peer_complete(void) {
  MPI_Win_flush_all(words);
  changes = 0;
}

#include "../harness/one_sided.h"

int main(int count, char **arguments) {
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  if (MPI_Win_allocate(65536 + 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window) != MPI_SUCCESS) fail("no window");
  if (MPI_Win_allocate((MPI_Aint)(8 * PEER_WORDS), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &peer_words, &words) != MPI_SUCCESS) fail("no window");
  memset(own, 0, 65536 + 64);
  memset(peer_words, 0, 8 * PEER_WORDS);
  for (size_t i = 0; i < sizeof from; i++) from[i] = (char)(i * 7 + 1);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, words);
  figures(count, arguments);
  MPI_Win_unlock_all(words);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&words);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
