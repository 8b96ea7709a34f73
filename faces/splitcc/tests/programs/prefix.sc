/* Parallel prefix with signaling stores, each waited for by its bytes; the recurrence of a linear filter as an example.
 * procs: 1 2 3 4
 * output: sums agree
 * output: filter agrees
 * output: segmented agrees
 */
#include <split-c/split-c.h>
#include <stdio.h>
#include <math.h>
#define LEN 1000

typedef struct { double a, b; } affine;         /* x -> a x + b */
typedef struct { int flag; long sum; } segment;

affine inbox[PROCS]::[32];
long longs[PROCS]::[32];
segment segs[PROCS]::[32];

/* one function for each type, by a macro of that time */
#define SCAN(NAME, TYPE, BOX, COMBINE)                                  \
TYPE NAME(mine, zero)                                                   \
     TYPE mine, zero;                                                   \
{                                                                       \
  int step, k;                                                          \
  TYPE before, got;                                                     \
  before = zero;                                                        \
  for (step = 1, k = 0; step < PROCS; step <<= 1, k++) {                \
    if (MYPROC + step < PROCS)                                          \
      BOX[MYPROC + step][k] :- mine;                                    \
    if (MYPROC - step >= 0) {                                           \
      store_sync(sizeof(TYPE));                                         \
      got = ((TYPE *)tolocal(BOX[MYPROC]))[k];                          \
      mine = COMBINE(got, mine);                                        \
      before = COMBINE(got, before);                                    \
    }                                                                   \
    barrier();                                                          \
  }                                                                     \
  return before;                                                        \
}

#define PLUS(x, y) ((x) + (y))
SCAN(scan_long, long, longs, PLUS)

affine after(first, second) affine first, second;
{
  affine r;
  r.a = first.a * second.a;
  r.b = second.a * first.b + second.b;
  return r;
}
SCAN(scan_affine, affine, inbox, after)

segment join(l, r) segment l, r;
{
  segment s;
  s.flag = l.flag | r.flag;
  s.sum = r.flag ? r.sum : l.sum + r.sum;
  return s;
}
SCAN(scan_segment, segment, segs, join)

static int value(i) { return (i * 7919) % 101 - 50; }
static starts(i) { return i % 97 == 0; }

splitc_main()
{
  int lo = (long)LEN * MYPROC / PROCS, hi = (long)LEN * (MYPROC + 1) / PROCS;
  int i, bad;
  long sum, before, expect;
  affine f, id; double x, y;
  segment s, none;

  for (i = lo, sum = 0; i < hi; i++) sum += value(i);
  before = scan_long(sum, 0L);
  for (i = 0, expect = 0; i < lo; i++) expect += value(i);
  bad = all_reduce_to_one_add(before != expect);
  on_one printf("sums %s\n", bad ? "differ" : "agree");

  id.a = 1, id.b = 0;
  for (i = lo, f = id; i < hi; i++) {
    affine g;
    g.a = 0.5, g.b = value(i);
    f = after(f, g);
  }
  f = scan_affine(f, id);
  x = f.a * 1.0 + f.b;
  for (i = 0, y = 1.0; i < lo; i++) y = 0.5 * y + value(i);
  bad = all_reduce_to_one_add(fabs(x - y) > 1e-9);
  on_one printf("filter %s\n", bad ? "differs" : "agrees");

  none.flag = 0, none.sum = 0;
  for (i = lo, s = none; i < hi; i++) {
    segment t;
    t.flag = starts(i), t.sum = value(i);
    s = join(s, t);
  }
  s = scan_segment(s, none);
  for (i = 0, expect = 0; i < lo; i++) expect = starts(i) ? value(i) : expect + value(i);
  bad = all_reduce_to_one_add(s.sum != expect);
  on_one printf("segmented %s\n", bad ? "differs" : "agrees");
  barrier();
}
