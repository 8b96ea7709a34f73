/* Lists over processors: a symbol table in the manner of Lisp, with global cells, mark bits and a free list; recursion everywhere.
 * procs: 1 2 3 4
 * output: (a (b c) d)
 * output: (d (c b) a)
 * output: 3 at top, 4 atoms
 * output: cells marked 7
 */
#include <stdio.h>
#include <string.h>
#include <split-c/split-c.h>
#include <split-c/control.h>

#define NIL ((SEXP)0)
#define car(x) ((x)->u.pair.a)
#define cdr(x) ((x)->u.pair.d)
#define atomp(x) ((x)->tag == ATOM)

enum tag { FREE, ATOM, PAIR = 4 };
struct cell {
	enum tag tag : 8;
	unsigned int mark : 1, : 7, depth : 16;
	union {
		char name[16];
		struct { struct cell *global a, *global d; } pair;
		struct cell *next;
	} u;
};
typedef struct cell *global SEXP;
typedef struct cell CELL;

#define HEAP 200
static CELL heap[HEAP], *freelist;
static int turn;
SEXP the_list, reversed;

static void init_heap()
{
	CELL *c;
	for (c = heap; c < heap + HEAP; c++)
		c->tag = FREE, c->mark = 0, c->u.next = freelist, freelist = c;
}

struct where { SEXP p; };

struct where allocate(h) CELL *h;
{
	struct where w;
	CELL *c = freelist;
	if (c) freelist = c->u.next;
	w.p = (SEXP)c;
	(void)h;
	return w;
}

/* cells are dealt out over the processors */
static SEXP new_cell(t) enum tag t;
{
	struct where w;
	w = atomic(allocate, toglobal(turn++ % PROCS, heap));
	w.p->tag = t;
	w.p->mark = 0;
	return w.p;
}

SEXP cons(a, d) SEXP a, d;
{
	SEXP c = new_cell(PAIR);
	car(c) = a;
	cdr(c) = d;
	return c;
}

SEXP intern(name) char *name;
{
	SEXP c = new_cell(ATOM);
	bulk_write(c->u.name, name, strlen(name) + 1);
	return c;
}

void print(x) SEXP x;
{
	char *sep = "";
	if (x == NIL) { printf("()"); return; }
	if (atomp(x)) {
		char name[16];
		bulk_read(name, &x->u.name[0], sizeof name);
		printf("%s", name);
		return;
	}
	for (putchar('('); x; x = cdr(x), sep = " ") { printf(sep); print(car(x)); }
	putchar(')');
}

SEXP append_reverse(x, tail) SEXP x, tail;
{
	return x == NIL ? tail : append_reverse(cdr(x), cons(!atomp(car(x)) ? append_reverse(car(x), NIL) : car(x), tail));
}

static int length(x) SEXP x; { return x ? 1 + length(cdr(x)) : 0; }
static int atoms(x) SEXP x; { return !x ? 0 : atomp(x) ? 1 : atoms(car(x)) + atoms(cdr(x)); }

static void mark(x) SEXP x;
{
	if (x == NIL || x->mark) return;
	x->mark = 1;
	x->depth = 9;
	if (x->tag == PAIR) mark(car(x)), mark(cdr(x));
}

splitc_main()
{
	int i, n = 0;
	init_heap();
	barrier();
	on_one {
		SEXP b = intern("b"), c = intern("c");
		the_list = cons(intern("a"), cons(cons(b, cons(c, NIL)), cons(intern("d"), NIL)));
		print(the_list), printf("\n");
	}
	barrier();
	on_proc(PROCS - 1) {
		SEXP x = *toglobal(0, &the_list);
		SEXP r = append_reverse(x, NIL);
		turn = 1;
		*toglobal(0, &reversed) = r;
		mark(car(r));
		mark(r);
	}
	barrier();
	on_one {
		print(reversed);
		printf("\n%d at top, %d atoms\n", length(reversed), atoms(reversed));
	}
	for (i = 0; i < HEAP; i++) if (heap[i].tag != FREE && heap[i].mark && heap[i].depth == 9) n++;
	n = all_reduce_to_one_add(n);
	on_one printf("cells marked %d\n", n - 2);
	barrier();
	exit(0);
}
