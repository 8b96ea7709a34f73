/* N queens: a queue of partial boards at processor 0, taken by an atomic procedure, counted by everybody.
 * procs: 1 2 3 4
 * output: 4 queens: 2 solutions
 * output: 6 queens: 4 solutions
 * output: 8 queens: 92 solutions
 * output: usage: queens [-v] [-d depth] size...
 */
#include <stdio.h>
#include <ctype.h>
#include <string.h>
#include <split-c/split-c.h>
#include <split-c/control.h>
#include <split-c/atomic.h>

#define TRUE 1
#define FALSE 0
typedef int bool_t;
#define MAXTASKS 256

typedef struct task {
	unsigned cols : 12, diag1 : 24, diag2 : 24;
	unsigned char depth;
} task_t;

typedef struct {
	int head, tail;
	task_t tasks[MAXTASKS];
} queue_t;

static queue_t queue;
queue_t *global gqueue;
int depth_limit = 2, verbose = FALSE;
static char *progname = "queens";

struct taken { int ok; task_t t; };

/* executed where the queue is */
struct taken take(q) queue_t *q;
{
	struct taken r;

	if (q->head == q->tail) {
		r.ok = FALSE;
		memset((char *)&r.t, 0, sizeof r.t);
	} else {
		r.ok = TRUE;
		r.t = q->tasks[q->head];
		q->head = (q->head + 1) % MAXTASKS;
	}
	return r;
}

void put_task(q, t) queue_t *q; task_t t;
{
	q->tasks[q->tail] = t;
	if ((q->tail = (q->tail + 1) % MAXTASKS) == q->head) {
		fprintf(stderr, "%s: queue overflow\n", progname);
		exit(1);
	}
}

static long count(n, cols, d1, d2) int n; unsigned cols, d1, d2;
{
	register unsigned left = ~(cols | d1 | d2) & ((1 << n) - 1), bit;
	long sum = 0;

	if (cols == (1 << n) - 1) return 1;
	while (left) {
		bit = left & -left;
		left ^= bit;
		sum += count(n, cols | bit, (d1 | bit) << 1, (d2 | bit) >> 1);
	}
	return sum;
}

static void expand(n, t) task_t t;
{
	unsigned left, bit;
	task_t u;

	if (t.depth >= depth_limit) {
		atomic(put_task, gqueue, t);
		return;
	}
	left = ~(t.cols | t.diag1 | t.diag2) & ((1 << n) - 1);
again:
	if (!left) goto done;
	bit = left & (~left + 1);
	left &= ~bit;
	u.cols = t.cols | bit;
	u.diag1 = (t.diag1 | bit) << 1;
	u.diag2 = (t.diag2 | bit) >> 1;
	u.depth = t.depth + 1;
	expand(n, u);
	goto again;
done:	;
}

usage()
{
	on_one printf("usage: %s [-v] [-d depth] size...\n", progname);
}

static solve(n)
{
	long mine = 0, all;
	struct taken got;

	gqueue = toglobal(0, &queue);
	on_one {
		task_t empty = {0, 0, 0, 0};
		queue.head = queue.tail = 0;
		expand(n, empty);
	}
	barrier();
	for (;;) {
		got = atomic(take, gqueue);
		if (!got.ok) break;
		mine += count(n, got.t.cols, got.t.diag1, got.t.diag2);
	}
	all = all_reduce_to_one_add_l(mine);
	on_one printf("%d queens: %ld solutions\n", n, all);
	barrier();
}

static char *sizes[] = { "queens", "-d2", "4", "6", "-v", "8", "-x", 0 };

splitc_main(argc, argv) int argc; char *argv[];
{
	register char *s;

	if (argc <= 1) { argv = sizes; argc = sizeof(sizes) / sizeof(sizes[0]) - 1; }
	while (--argc > 0) {
		if ((*++argv)[0] == '-')
			for (s = argv[0] + 1; *s != '\0'; s++)
				switch (*s) {
				case 'v': verbose = TRUE; break;
				case 'd': depth_limit = 0;
					while (isdigit(s[1])) depth_limit = depth_limit * 10 + *++s - '0';
					break;
				default: usage();
				}
		else
			solve(atoi(*argv));
	}
	return (0);
}
