/* Connected components: graphs as lists of neighbours by global pointers, labels by hooking and shortcutting.
 * procs: 1 2 3 4
 * output: 120 vertices, 37 components
 * output: labels agree
 */
#include <split-c/split-c.h>
#include <split-c/control.h>
#include <stdio.h>
#include <stdlib.h>
#include <assert.h>

#define NV 120

typedef struct edge Edge;
typedef struct vertex Vertex;
struct vertex {
  int id, mark:2, done:1;
  struct vertex *global parent;
  Edge *edges;                  /* local list */
};
struct edge {
  Vertex *global other;
  Edge *next;
};

typedef Vertex *global GVertex;

Vertex graph[NV]::;
static long next_random = 42;
int changed;

#define VERTEX(i) ((GVertex)(&graph[(i)]))
#define MY_VERTICES(i) for ((i) = MYPROC; (i) < NV; (i) += PROCS)

static int irandom(int below)
{
  next_random = (next_random * 16807L) % 2147483647L;
  return (int)(next_random % below);
}

static void connect(a, b)
     int a, b;
{
  Edge *e;
  if (a % PROCS == MYPROC) {
    e = (Edge *)malloc(sizeof(Edge));
    e->other = VERTEX(b);
    e->next = graph[a].edges;
    ((Vertex *)&graph[a])->edges = e;
  }
}

/* runs at the owner of v */
void hook(v, to)
     Vertex *v;
     GVertex to;
{
  if (v->parent == toglobal(MYPROC, v) && to->id < v->id)
    v->parent = to;
  else if (to->id < v->parent->id)
    v->parent = to;
}

GVertex root_of(v)
     GVertex v;
{
  GVertex p;
  for (p = v->parent; p != v; p = v->parent)
    v = p;
  return v;
}

static int serial_label[NV], serial_count;

static void serial(ea, eb, ne)
     int ea[], eb[], ne;
{
  int i, again = 1;
  for (i = 0; i < NV; i++) serial_label[i] = i;
  do {
    again = 0;
    for (i = 0; i < ne; i++) {
      register int a = serial_label[ea[i]], b = serial_label[eb[i]];
      if (a < b) serial_label[eb[i]] = a, again++;
      else if (b < a) serial_label[ea[i]] = b, ++again;
    }
  } while (again);
  for (i = 0; i < NV; i++) serial_count += serial_label[i] == i;
}

splitc_main()
{
  int i, ne, ea[NV], eb[NV], count, wrong;

  MY_VERTICES(i) {
    Vertex *v = tolocal(&graph[i]);
    v->id = i, v->mark = v->done = 0;
    v->parent = VERTEX(i);
    v->edges = NULL;
  }
  barrier();
  /* the same edges are drawn everywhere; each takes those of its own vertices */
  for (ne = 0; ne < NV - 2; ne++) {
    ea[ne] = irandom(NV), eb[ne] = irandom(NV) / 11 * 11 + ea[ne] % 11;
    if (eb[ne] >= NV) eb[ne] = ea[ne];
    connect(ea[ne], eb[ne]);
    connect(eb[ne], ea[ne]);
  }
  barrier();
  do {
    changed = 0;
    MY_VERTICES(i) {
      Vertex *v = (Vertex *)&graph[i];
      Edge *e;
      GVertex mine = root_of(VERTEX(i));
      for (e = v->edges; e != NULL; e = e->next) {
        GVertex theirs = root_of(e->other);
        if (theirs->id < mine->id) {
          atomic(hook, mine, theirs);
          changed = 1;
        }
      }
    }
    barrier();
    MY_VERTICES(i) ((Vertex *)&graph[i])->parent = root_of(VERTEX(i));
    barrier();
  } while (all_reduce_to_all_max(changed));
  count = 0;
  MY_VERTICES(i) if (graph[i].parent == VERTEX(i)) count++;
  count = all_reduce_to_one_add(count);
  serial(ea, eb, ne);
  wrong = 0;
  MY_VERTICES(i) if (graph[i].parent->id != serial_label[i]) wrong++;
  wrong = all_reduce_to_one_add(wrong);
  on_one {
    printf("%d vertices, %d components\n", NV, count);
    printf(wrong || count != serial_count ? "%d labels are wrong, %d components\n" : "labels agree\n", wrong, serial_count);
  }
  assert(MYPROC >= 0);
  barrier();
  return 0;
}
