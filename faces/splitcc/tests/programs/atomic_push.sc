/* Keys are pushed to their owners, as the sample sort does it.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

struct queue { int n, sum, key[400]; };
struct queue Q[PROCS]::;
void push(struct queue *q, int key) { q->key[q->n++] = key; q->sum += key; }

int splitc_main(int argc, char **argv)
{
    int i;
    for (i = 0; i < 40; i++) atomic(push, &Q[(i + MYPROC) % PROCS], i);
    barrier();
    CHECK(tolocal(&Q[MYPROC])->n == 40);
    i = all_reduce_to_all_add(tolocal(&Q[MYPROC])->sum);
    CHECK(i == PROCS * 780);
    DONE();
}
