/* MPI, built once with Open MPI and once with MPICH. Latency by MPI_Send and MPI_Recv; streams by windows of
 * MPI_Isend and MPI_Irecv, as the OSU micro-benchmarks measure rate and bandwidth. */
#include "../harness/session.h"

#include <mpi.h>

#define WINDOW_MAX 64
#define WINDOW_BYTES ((size_t)256 << 10)
#define TAG 1

static inline size_t window_of(size_t size) {
  size_t window = WINDOW_BYTES / size;
  return window < 2 ? 2 : window > WINDOW_MAX ? WINDOW_MAX : window;
}
#define PEER_BUFFERS(size) window_of(size)

static MPI_Request requests[WINDOW_MAX];
static size_t posted, completed;
static uint64_t to_post;

static const char *peer_supports(const struct order *order) {
  posted = completed = 0;
  to_post = order->count * (uint64_t)order->senders;
  return NULL;
}

static inline void peer_send(const char *data, size_t size) {
  if (session.order.latency) {
    MPI_Send(data, (int)size, MPI_BYTE, session.role == RECEIVER ? 1 : RECEIVER, TAG, MPI_COMM_WORLD);
    return;
  }
  MPI_Isend(data, (int)size, MPI_BYTE, RECEIVER, TAG, MPI_COMM_WORLD, &requests[posted++]);
  /* The next message is stamped in the buffer of the first of these. */
  if (posted == window_of(size)) {
    MPI_Waitall((int)posted, requests, MPI_STATUSES_IGNORE);
    posted = 0;
  }
}

static inline char *peer_receive(char *into, size_t size) {
  if (session.order.latency) {
    MPI_Recv(into, (int)size, MPI_BYTE, session.role == RECEIVER ? 1 : RECEIVER, TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    return into;
  }
  /* A window is posted as a whole, waited for as a whole, then handed out. */
  static char *places[WINDOW_MAX];
  if (completed == posted) {
    size_t window = window_of(size);
    if (window > to_post) window = to_post;
    int source = session.order.senders == 1 ? 1 : MPI_ANY_SOURCE;
    size_t room = session.order.fresh ? REGION_BYTES : size * window_of(size);
    for (posted = 0; posted < window; posted++) {
      size_t offset = (size_t)(into - session.target) + posted * size;
      /* The buffers that the next calls name, wrapped as they will be. */
      places[posted] = session.target + offset % (room / size * size);
      MPI_Irecv(places[posted], (int)size, MPI_BYTE, source, TAG, MPI_COMM_WORLD, &requests[posted]);
    }
    MPI_Waitall((int)posted, requests, MPI_STATUSES_IGNORE);
    to_post -= posted;
    completed = 0;
  }
  return places[completed++];
}

static void peer_settle(void) {
  if (!session.order.latency && session.role != RECEIVER) {
    MPI_Waitall((int)posted, requests, MPI_STATUSES_IGNORE);
    posted = 0;
  }
}

#include "../harness/figures.h"

int main(int count, char **arguments) {
  int rank, ranks;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  session_open(count, arguments, rank, true);
  if (ranks != session.senders + 1) fail("%d ranks for %d senders", ranks, session.senders);
  MPI_Barrier(MPI_COMM_WORLD);
  figures();
  MPI_Finalize();
  return 0;
}
