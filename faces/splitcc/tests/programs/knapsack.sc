/* Branch and bound for the knapsack, with the best value at processor 0; messages by varargs.h.
 * procs: 1 2 3 4
 * output: [info] knapsack: 18 items, capacity 150
 * output: best value 229 (dynamic programming 229)
 * output: [warning] 2 of 3 tests: ratio 0.50, letter x
 */
#include <stdio.h>
#include <varargs.h>
#include <split-c/split-c.h>
#include <split-c/control.h>

#define ITEMS 18
#define CAPACITY 150

struct item { short weight, value; } items[ITEMS] = {
	{ 12, 19 }, { 23, 31 }, { 7, 11 }, { 31, 44 }, { 18, 29 }, { 9, 12 },
	{ 27, 35 }, { 15, 24 }, { 21, 33 }, { 5, 6 }, { 38, 51 }, { 11, 17 },
	{ 29, 41 }, { 14, 20 }, { 19, 27 }, { 33, 46 }, { 8, 13 }, { 25, 36 }
};
int best, nodes;

/*VARARGS1*/
static void message(level, va_alist)
	char *level;
	va_dcl
{
	va_list ap;
	char *fmt;

	va_start(ap);
	fmt = va_arg(ap, char *);
	printf("[%s] ", level);
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
}

/*VARARGS*/
largest(va_alist) va_dcl
{
	va_list ap;
	int n, v, most = -1;

	va_start(ap);
	for (n = va_arg(ap, int); n > 0; --n)
		if ((v = va_arg(ap, int)) > most)
			most = v;
	va_end(ap);
	return most;
}

/*VARARGS*/
double average(va_alist)
	va_dcl
{
	va_list ap;
	double first, second;

	va_start(ap);
	first = va_arg(ap, double);
	second = va_arg(ap, double);
	va_end(ap);
	return (first + second) / 2;
}

static int by_ratio(a, b)
	struct item *a, *b;
{
	return b->value * a->weight - a->value * b->weight;
}

raise_to(p, v) int *p; { if (*p < v) *p = v; return *p; }

static int known;

static double bound(i, left)
{
	double sum = 0;

	while (i < ITEMS && items[i].weight <= left)
		left -= items[i].weight, sum += items[i++].value;
	return i < ITEMS ? sum + (double)left * items[i].value / items[i].weight : sum;
}

static void search(i, left, value)
{
	nodes++;
	if (value > known)
		known = atomic(raise_to, toglobal(0, &best), value);
	else if (nodes % 64 == 0)
		known = *toglobal(0, &best);
	if (i == ITEMS || value + bound(i, left) <= known)
		return;
	if (items[i].weight <= left)
		search(i + 1, left - items[i].weight, value + items[i].value);
	search(i + 1, left, value);
}

static int dynamic()
{
	static int table[CAPACITY + 1];
	int i, w;

	for (i = 0; i < ITEMS; i++)
		for (w = CAPACITY; w >= items[i].weight; w--)
			if (table[w - items[i].weight] + items[i].value > table[w])
				table[w] = table[w - items[i].weight] + items[i].value;
	return table[CAPACITY];
}

splitc_main()
{
	int part, i, left, value;

	qsort((char *)items, ITEMS, sizeof(struct item), by_ratio);
	on_one message("info", "%s: %d items, capacity %d", "knapsack", ITEMS, CAPACITY);
	barrier();
	/* the first four decisions are dealt out */
	for (part = MYPROC; part < 16; part += PROCS) {
		for (i = 0, left = CAPACITY, value = 0; i < 4; i++)
			if (part >> i & 1)
				left -= items[i].weight, value += items[i].value;
		if (left >= 0)
			search(4, left, value);
	}
	barrier();
	on_one {
		printf("best value %d (dynamic programming %d)\n", best, dynamic());
		message("warning", "%d of %d tests: ratio %.2f, letter %c", largest(4, 1, 2, -7, 0), 3, average(0.25, 0.75), 'x');
	}
	barrier();
	return (all_reduce_to_all_add(nodes) <= 0);
}
