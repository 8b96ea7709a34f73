/* All shortest paths, rows in blocks, pivot rows broadcast down a tree of stores; and a heap for Dijkstra as a check.
 * procs: 1 2 3 4
 * output: 40 nodes, paths agree
 */
#include <stdio.h>
#include <malloc.h>
#include <split-c/split-c.h>
#include <split-c/control.h>

#define V 40
#define INFINITY_ 1000000
#define LEFT(i) (2 * (i) + 1)
#define RIGHT(i) (LEFT(i) + 1)

static int **dist;              /* my rows */
static int pivot[V], seen_pivot;
static int weight_[V][V];

struct heap { int n; struct { int key, node; } *a; };

static weight(i, j)
{
	register long h = (i * 7919L + j * 104729L) % 1009;
	return i == j ? 0 : h % 5 == 0 ? (int) h + 1 : INFINITY_;
}

static int mine(i) { return i % PROCS == MYPROC; }

/* children of a binary tree whose root is processor `root' */
static void spread_pivot(root)
{
	int me = (MYPROC - root + PROCS) % PROCS, child;
	int k;

	if (me != 0) store_sync(sizeof pivot);
	for (k = 1; k <= 2; k++)
		if ((child = 2 * me + k) < PROCS) {
			int *global to = toglobal((child + root) % PROCS, pivot);
			bulk_store(to, pivot, sizeof(pivot));
		}
}

static swap_(h, i, j) struct heap *h;
{
	int k = h->a[i].key, n = h->a[i].node;
	h->a[i] = h->a[j];
	h->a[j].key = k, h->a[j].node = n;
}

static push(h, key, node) struct heap *h;
{
	int i = h->n++;
	h->a[i].key = key; h->a[i].node = node;
	while (i > 0 && h->a[(i - 1) / 2].key > h->a[i].key) { swap_(h, i, (i - 1) / 2); i = (i - 1) / 2; }
}

static pop(h, key) struct heap *h; int *key;
{
	int i = 0, c, node = h->a->node;
	*key = h->a->key;
	h->a[0] = h->a[--h->n];
	while ((c = LEFT(i)) < h->n) {
		if (RIGHT(i) < h->n && h->a[RIGHT(i)].key < h->a[c].key) c = RIGHT(i);
		if (h->a[i].key <= h->a[c].key) break;
		swap_(h, i, c), i = c;
	}
	return node;
}

static dijkstra(s, d) int d[];
{
	struct heap h; int i, key;
	h.n = 0, h.a = (void *)malloc(V * V * sizeof *h.a);
	for (i = 0; i < V; i++) d[i] = INFINITY_;
	push(&h, d[s] = 0, s);
	while (h.n) {
		int u = pop(&h, &key);
		if (key > d[u]) continue;
		for (i = 0; i < V; i++) if (d[u] + weight(u, i) < d[i]) push(&h, d[i] = d[u] + weight(u, i), i);
	}
	free((char *) h.a);
}

splitc_main()
{
	int i, j, k, wrong = 0, d[V];

	dist = (int **) calloc(V, sizeof(int *));
	for (i = 0; i < V; i++) {
		if (!mine(i)) continue;
		dist[i] = (int *) malloc(V * sizeof(**dist));
		for (j = 0; j < V; j++) dist[i][j] = weight(i, j);
	}
	for (k = 0; k < V; k++) {
		if (mine(k)) for (j = 0; j < V; j++) pivot[j] = dist[k][j];
		spread_pivot(k % PROCS);
		for (i = MYPROC; i < V; i += PROCS)
			for (j = 0; j < V; j++)
				if (dist[i][k] + pivot[j] < dist[i][j]) dist[i][j] = dist[i][k] + pivot[j];
		barrier();
	}
	for (i = MYPROC; i < V; i += PROCS) {
		dijkstra(i, d);
		for (j = 0; j < V; j++) if (d[j] != dist[i][j] && !(d[j] >= INFINITY_ && dist[i][j] >= INFINITY_)) wrong++;
	}
	wrong = all_reduce_to_one_add(wrong);
	on_one printf(wrong ? "%d nodes, %d paths differ\n" : "%d nodes, paths agree\n", V, wrong);
}
