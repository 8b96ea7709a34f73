/* Programs of Split-C's paper over one-sided operations: random updates of a table that lies over all processes (GUPS), em3d with remote
 * reads, and a sort that sends each key to the process whose part of the range it is in. The same for each library.
 *
 * Before this file is included, after one_sided.h, a peer defines
 *   peer_words                            this process's part of the memory that all share: PEER_WORDS words, cleared
 *   peer_read_word(proc, at)              a word of a process's part, waited for
 *   peer_add_word(proc, at, value)        adds, waits, and returns what was there
 *   peer_xor_word(proc, at, value), peer_put_word(proc, at, value), peer_complete()
 *                                         changes and stores that need no result, and waiting for all of them
 * It prints, from process 0, `updates`, the table's bytes, and nanoseconds for an update of all processes together; and the same of `em3d`
 * (for an edge) and `sort` (for a key). */

/* The words before are counters of the sort. */
enum { KEYS_AT = 8, KEYS_MAX = 32768, NODES = 200, DEGREE = 10, REMOTE_PER_CENT = 40 };

static uint64_t mixed(uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  number = (number ^ number >> 27) * 0x94d049bb133111eb;
  return number ^ number >> 31;
}

static double as_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint64_t as_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Runs the program with a few units of work, then with as many as last so long; nanoseconds for a unit of one process. */
static double measured(void (*program)(long units), long few, long most, double lasts_ns) {
  long units = few;
  double took = 0;
  for (int round = 0; round < 2; round++) {
    peer_broadcast(&units);
    peer_barrier();
    double begun = now_ns();
    program(units);
    peer_barrier();
    took = now_ns() - begun;
    if (round == 0) {
      double wanted = (double)few * lasts_ns / took;
      units = wanted > (double)most ? most : wanted < (double)few ? few : (long)wanted;
    }
  }
  return took / (double)units;
}

static uint64_t table_words;

static void update(long count) {
  uint64_t number = mixed((uint64_t)me);
  for (long i = 0; i < count; i++) {
    number = number << 1 ^ ((int64_t)number < 0 ? 7 : 0);
    uint64_t word = number & (table_words - 1);
    peer_xor_word((int)(word % (uint64_t)procs), word / (uint64_t)procs, number);
  }
  peer_complete();
}

/* The same updates again undo themselves. */
static void update_and_undo(long count) {
  update(count);
  peer_barrier();
  update(count);
}

static struct {
  int proc;
  long at;
  double weight;
} edges[2][NODES][DEGREE];

/* Where an edge of a node of a process begins, among the nodes of the other kind. */
static void edge_of(int proc, int kind, long node, long number, int *of, long *at, double *weight) {
  uint64_t random = mixed((uint64_t)(((proc * 2 + kind) * NODES + node) * DEGREE + number));
  int is_remote = procs > 1 && (int)(random % 100) < REMOTE_PER_CENT;
  *of = is_remote ? (proc + 1 + (int)((random >> 8) % (uint64_t)(procs - 1))) % procs : proc;
  *at = (long)((random >> 20) % NODES);
  *weight = (double)((random >> 32) % 1000) / 1e6;
}

static double first_value(int proc, int kind, long node) {
  return (double)(mixed((uint64_t)((proc * 2 + kind) * NODES + node)) % 1000);
}

static long em3d_rounds;

static void em3d(long rounds) {
  for (long round = 0; round < rounds; round++)
    for (int kind = 0; kind < 2; kind++) {
      for (long node = 0; node < NODES; node++) {
        double value = as_double(peer_words[KEYS_AT + kind * NODES + node]);
        for (long number = 0; number < DEGREE; number++) {
          uint64_t at = KEYS_AT + (uint64_t)((1 - kind) * NODES + edges[kind][node][number].at);
          int proc = edges[kind][node][number].proc;
          double other = as_double(proc == me ? peer_words[at] : peer_read_word(proc, at));
          value -= edges[kind][node][number].weight * other;
        }
        peer_words[KEYS_AT + kind * NODES + node] = as_bits(value);
      }
      peer_barrier();
    }
  em3d_rounds += rounds;
}

/* The same by this process alone; whether its own part is alike. */
static int is_em3d_right(void) {
  double *values = malloc(sizeof *values * (size_t)procs * 2 * NODES);
  if (!values) fail("no memory");
#define VALUE(proc, kind, node) values[((proc) * 2 + (kind)) * NODES + (node)]
  for (int proc = 0; proc < procs; proc++)
    for (int kind = 0; kind < 2; kind++)
      for (long node = 0; node < NODES; node++) VALUE(proc, kind, node) = first_value(proc, kind, node);
  for (long round = 0; round < em3d_rounds; round++)
    for (int kind = 0; kind < 2; kind++)
      for (int proc = 0; proc < procs; proc++)
        for (long node = 0; node < NODES; node++)
          for (long number = 0; number < DEGREE; number++) {
            int of;
            long at;
            double weight;
            edge_of(proc, kind, node, number, &of, &at, &weight);
            VALUE(proc, kind, node) -= weight * VALUE(of, 1 - kind, at);
          }
  int is_right = 1;
  for (int kind = 0; kind < 2; kind++)
    for (long node = 0; node < NODES; node++)
      is_right &= as_bits(VALUE(me, kind, node)) == peer_words[KEYS_AT + kind * NODES + node];
#undef VALUE
  free(values);
  return is_right;
}

static int compare_keys(const void *one, const void *other) {
  uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
  return (a > b) - (a < b);
}

/* So many keys of each process. The words before the keys: how many came, and at process 0 the sums of all that were sent and of all
 * that came. */
static void sort(long count) {
  if (me == 0) peer_words[1] = peer_words[2] = peer_words[3] = 0;
  peer_words[0] = 0;
  peer_barrier();
  uint64_t sent = 0, came = 0;
  for (long i = 0; i < count; i++) {
    uint64_t key = mixed((uint64_t)i * (uint64_t)procs + (uint64_t)me);
    int to = (int)((key >> 32) * (uint64_t)procs >> 32);
    uint64_t place = peer_add_word(to, 0, 1);
    if (place >= 2 * KEYS_MAX) fail("a process has more keys than it has room for");
    peer_put_word(to, KEYS_AT + place, key);
    sent += key;
  }
  peer_complete();
  peer_barrier();
  uint64_t own = peer_words[0];
  qsort((void *)(peer_words + KEYS_AT), own, sizeof *peer_words, compare_keys);
  for (uint64_t i = 0; i < own; i++) {
    uint64_t key = peer_words[KEYS_AT + i];
    if ((int)((key >> 32) * (uint64_t)procs >> 32) != me) fail("a key came to the wrong process");
    came += key;
  }
  peer_add_word(0, 1, sent - came);
  peer_add_word(0, 2, own);
  peer_barrier();
  if (me == 0 && (peer_words[1] != 0 || peer_words[2] != (uint64_t)count * (uint64_t)procs)) fail("a key was lost");
}

static void programs(double lasts_ns) {
  static const size_t tables_bytes[] = {65536, 4194304};
  for (size_t i = 0; i < sizeof tables_bytes / sizeof *tables_bytes; i++) {
    table_words = tables_bytes[i] / 8;
    double unit_ns = measured(update_and_undo, 500, 10000000, lasts_ns);
    for (uint64_t at = 0; at < table_words / (uint64_t)procs; at++)
      if (peer_words[at] != 0) fail("an update was lost, or made twice");
    if (me == 0) printf("updates %zu %.3f\n", tables_bytes[i], unit_ns / 2 / procs);
    peer_barrier();
  }
  for (int kind = 0; kind < 2; kind++)
    for (long node = 0; node < NODES; node++) {
      peer_words[KEYS_AT + kind * NODES + node] = as_bits(first_value(me, kind, node));
      for (long number = 0; number < DEGREE; number++)
        edge_of(me, kind, node, number, &edges[kind][node][number].proc, &edges[kind][node][number].at, &edges[kind][node][number].weight);
    }
  double unit_ns = measured(em3d, 1, 2000, lasts_ns);
  if (!is_em3d_right()) fail("em3d has other values than a serial run");
  if (me == 0) printf("em3d 8 %.3f\n", unit_ns / (2.0 * NODES * DEGREE * procs));
  peer_barrier();
  unit_ns = measured(sort, 500, KEYS_MAX, lasts_ns);
  if (me == 0) printf("sort 8 %.3f\n", unit_ns / procs);
  fflush(stdout);
  peer_barrier();
}
