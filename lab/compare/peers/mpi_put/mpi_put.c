/* MPI's one-sided calls: MPI_Put into a window of shared memory. A put notifies nobody, so a message is its bytes and then, after
 * MPI_Win_flush, a put of a number into a word of its own; the target polls that word, and reads the message where it lies. */
#include "../harness/session.h"

#include <mpi.h>

#define PLACES_MAX 64
#define PLACES_BYTES ((size_t)256 << 10)

/* At the beginning of each process' part of the window, a line for each word. */
enum { ARRIVED = 0, TAKEN = 64, PLACES = 4096 };

static MPI_Win window;
static char *own;
static uint64_t sent, received;
/* The other's words, as far as they are known. */
static uint64_t taken_by_other;

static inline size_t places_of(size_t size) {
  size_t places = PLACES_BYTES / size;
  return places < 2 ? 2 : places > PLACES_MAX ? PLACES_MAX : places;
}
#define PEER_BUFFERS(size) 1

static inline int other(void) { return session.role == RECEIVER ? 1 : RECEIVER; }

static inline uint64_t load(size_t at) { return __atomic_load_n((uint64_t *)(own + at), __ATOMIC_ACQUIRE); }

static inline void put_word(uint64_t *word, size_t at) {
  MPI_Put(word, 8, MPI_BYTE, other(), (MPI_Aint)at, 8, MPI_BYTE, window);
  MPI_Win_flush(other(), window);
}

static const char *peer_supports(const struct order *order) {
  /* What arrives lies in the same few places of the window. */
  return order->fresh ? "a window has the same places again and again" : NULL;
}

static inline void peer_send(const char *data, size_t size) {
  size_t places = places_of(size);
  /* In a round trip the answer says that the place is free. */
  if (!session.order.latency)
    while (sent - taken_by_other >= places) taken_by_other = load(TAKEN);
  MPI_Put(data, (int)size, MPI_BYTE, other(), (MPI_Aint)(PLACES + sent % places * size), (int)size, MPI_BYTE, window);
  MPI_Win_flush(other(), window);
  sent++;
  put_word(&sent, ARRIVED);
}

static inline char *peer_receive(char *into, size_t size) {
  (void)into;
  size_t places = places_of(size);
  /* What was handed out by the last call is free now; told for half of the places at a time. */
  if (!session.order.latency && received % (places / 2) == 0) put_word(&received, TAKEN);
  while (load(ARRIVED) <= received) {
  }
  return own + PLACES + received++ % places * size;
}

static void peer_settle(void) {
  /* After round trips, too: the next order may be a stream. */
  if (session.role == RECEIVER) put_word(&received, TAKEN);
}

#include "../harness/figures.h"

int main(int count, char **arguments) {
  int rank, ranks;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  session_open(count, arguments, rank, true);
  if (ranks != 2 || session.senders != 1) fail("one sender only");
  MPI_Aint bytes = (MPI_Aint)(PLACES + 2 * MESSAGE_BYTES_MAX);
  if (MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window) != MPI_SUCCESS) fail("no window");
  memset(own, 0, (size_t)bytes);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  MPI_Barrier(MPI_COMM_WORLD);
  figures();
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
