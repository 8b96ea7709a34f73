/* Bucket sort with keys counted, spread and sorted locally, as programs of 1993 wrote it.
 * procs: 1 2 3 4
 * output: 4000 keys sorted, checksum ok
 */
#include <stdio.h>
#include <sys/types.h>
#include <sys/time.h>
#include <split-c/split-c.h>
#include <split-c/control.h>

#define	KEYBITS	16
#define	MAXKEY	(1 << KEYBITS)
#define	NKEYS	4000
#define	MIN(a,b)	((a) < (b) ? (a) : (b))
#define BUCKET(k)	((int)((unsigned long)(k) * PROCS >> KEYBITS))

typedef unsigned int u_key;
typedef struct bucket_s {
	int n;
	int size;
	u_key *keys;
} bucket_t, *bucket_p;

static bucket_t mybucket;
static u_key *mykeys;
static int nmine;
int *spread where;			/* one counter for each processor */
static long randx = 1;

static srand1(x)
	unsigned x;
{
	randx = x;
}

static rand1()
{
	randx = randx * 1103515245 + 12345;
	return (randx >> 16 & 077777) << 1 | (randx >> 3 & 1);
}

static int
cmp(a, b)
	char *a, *b;
{
	register u_key x = *(u_key *)a, y = *(u_key *)b;

	if (x < y)
		return (-1);
	return (x > y);
}

makekeys(n)
{
	register int i;
	register u_key *kp;

	mykeys = (u_key *)malloc((unsigned)(n * sizeof(u_key)));
	if (mykeys == (u_key *)0) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	srand1(MYPROC * 77 + 13);
	for (i = 0, kp = mykeys; i < n; i++)
		*kp++ = rand1() & (MAXKEY - 1);
}

/*
 * Room for a bucket is reserved at its owner, then filled with a bulk store.
 */
reserve(np, n, result)
	int *np;
	int n;
	int *result;
{
	*result = *np;
	*np += n;
}

int reserve_at(np, n)
	int *np, n;
{
	int r;
	reserve(np, n, &r);
	return r;
}

double elapsed(tv0)
	struct timeval *tv0;
{
	struct timeval tv;

	gettimeofday(&tv, (struct timezone *)0);
	return (tv.tv_sec - tv0->tv_sec) + 1e-6 * (tv.tv_usec - tv0->tv_usec);
}

splitc_main(argc, argv)
	int argc;
	char **argv;
{
	struct timeval begun;
	int i, p, total, *counts, *fill;
	u_key *sorted, lastkey, next;
	u_key *spread room;
	unsigned long sum, sum2;
	int n = NKEYS;
	static u_key borders[PROCS]::;

	gettimeofday(&begun, (struct timezone *)NULL);
	nmine = n / PROCS + (MYPROC < n % PROCS);
	makekeys(nmine);
	where = all_spread_malloc(PROCS, sizeof(int));
	*(int *)(where + MYPROC) = 0;
	room = (u_key *spread)all_spread_malloc(PROCS, n * sizeof(u_key));
	barrier();

	counts = (int *)calloc(PROCS, sizeof(int));
	fill = (int *)calloc(PROCS, sizeof(int));
	sorted = (u_key *)malloc(nmine * sizeof *sorted + 1);
	for (i = 0, sum = 0; i < nmine; i++) {
		counts[BUCKET(mykeys[i])]++;
		sum += mykeys[i] * 3 ^ 5;
	}
	for (p = 1; p < PROCS; p++)
		fill[p] = fill[p-1] + counts[p-1];
	for (i = 0; i < nmine; i++)
		sorted[fill[BUCKET(mykeys[i])]++] = mykeys[i];
	for (i = 0; i < PROCS; i++) {
		int at;
		u_key *global to;

		p = (MYPROC + i) % PROCS;
		if (!counts[p])
			continue;
		at = atomic(reserve_at, (int *global)(where + p), counts[p]);
		to = (u_key *global)(room + p);
		bulk_store(to + at, &sorted[fill[p] - counts[p]], counts[p] * sizeof(u_key));
	}
	all_store_sync();
	mybucket.n = *tolocal(where + MYPROC);
	mybucket.size = n;
	mybucket.keys = (u_key *)(room + MYPROC);
	qsort((char *)mybucket.keys, mybucket.n, sizeof(u_key), cmp);
	barrier();

	/* check: in order here, and towards the next that has any */
	for (i = 0, sum2 = 0; i < mybucket.n; i++) {
		if (i > 0 && mybucket.keys[i-1] > mybucket.keys[i])
			printf("%d: out of order at %d\n", MYPROC, i);
		sum2 += mybucket.keys[i] * 3 ^ 5;
	}
	borders[MYPROC] = mybucket.n ? mybucket.keys[mybucket.n - 1] : 0;
	barrier();
	if (MYPROC != 0 && mybucket.n && borders[MYPROC - 1] > *mybucket.keys)
		printf("%d: out of order at the border\n", MYPROC);
	total = all_reduce_to_one_add(mybucket.n);
	sum = all_reduce_to_all_add_ul(sum);
	sum2 = all_reduce_to_all_add_ul(sum2);
	on_one {
		printf("%d keys sorted, checksum %s\n", total, sum == sum2 ? "ok" : "wrong");
		if (elapsed(&begun) < 0. || elapsed(&begun) > 3600.)
			printf("strange clock\n");
	}
	all_spread_free(where);
	all_spread_free(room);
	free((char *)counts), free((char *)fill), cfree(0);
}

cfree(p) char *p; { if (p) free(p); }
