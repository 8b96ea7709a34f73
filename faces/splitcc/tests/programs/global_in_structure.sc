/* Global pointers in structures: a list over the processors.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

typedef struct node { int value; struct node *global next; } node;
node here;

int splitc_main(int argc, char **argv)
{
    node *global p;
    int i, sum = 0;
    here.value = MYPROC + 1;
    here.next = MYPROC == LAST ? NULL : toglobal(MYPROC + 1, &here);
    barrier();
    for (p = toglobal(0, &here), i = 0; p; p = p->next, i++) sum += p->value;
    CHECK(i == PROCS && sum == PROCS * (PROCS + 1) / 2);
    p = toglobal(0, &here);
    if (PROCS > 2) CHECK(p->next->next->value == 3);
    DONE();
}
