/* OpenSHMEM: shmem_getmem, shmem_putmem with shmem_quiet, and shmem_long_atomic_fetch_add. */
#include <shmem.h>
#include <stddef.h>
#include <stdint.h>

static int me, procs;
static char *shared;
static long *word, *broadcast;
static char from[65536], into[65536];

static inline void peer_read(size_t size) { shmem_getmem(into, shared, size, 1); }

static inline void peer_write(size_t size) {
  shmem_putmem(shared, from, size, 1);
  shmem_quiet();
}

static void peer_stream(size_t size, long count) {
  for (long i = 0; i < count; i++) shmem_putmem(shared, from, size, 1);
  shmem_quiet();
}

static inline long peer_add(void) { return shmem_long_atomic_fetch_add(word, 1, 0); }
static long peer_sum(void) { return shmem_long_atomic_fetch(word, 0); }
static void peer_barrier(void) { shmem_barrier_all(); }

static void peer_broadcast(long *value) {
  shmem_barrier_all();
  if (me == 0)
    for (int to = 0; to < procs; to++) shmem_long_p(broadcast, *value, to);
  shmem_barrier_all();
  *value = *broadcast;
}

static int peer_check(size_t size) {
  for (size_t i = 0; i < size; i++)
    if (into[i] != from[i]) return 0;
  return 1;
}

static uint64_t *peer_words;

static inline uint64_t peer_read_word(int proc, uint64_t at) { return shmem_uint64_g(peer_words + at, proc); }
static inline uint64_t peer_add_word(int proc, uint64_t at, uint64_t value) { return shmem_ulong_atomic_fetch_add(peer_words + at, value, proc); }
static inline void peer_xor_word(int proc, uint64_t at, uint64_t value) { shmem_uint64_atomic_xor(peer_words + at, value, proc); }
static inline void peer_put_word(int proc, uint64_t at, uint64_t value) { shmem_uint64_p(peer_words + at, value, proc); }
static void peer_complete(void) { shmem_quiet(); }

#include "../harness/one_sided.h"

int main(int count, char **arguments) {
  shmem_init();
  me = shmem_my_pe();
  procs = shmem_n_pes();
  shared = shmem_malloc(65536);
  word = shmem_malloc(64);
  broadcast = shmem_malloc(64);
  peer_words = shmem_calloc(PEER_WORDS, 8);
  if (!peer_words || !shared || !word || !broadcast) fail("no memory");
  *word = 0;
  for (size_t i = 0; i < sizeof from; i++) from[i] = (char)(i * 7 + 1);
  figures(count, arguments);
  /* shmem_finalize of Open MPI 4.1.4 over UCX 1.13 ends in a segmentation fault. */
  shmem_global_exit(0);
}
