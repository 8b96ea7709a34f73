/* Memory of malloc can be read by others.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

typedef struct node { int v; struct node *next; } node;
int *global there[PROCS]::;

int splitc_main(int argc, char **argv)
{
    int *global p, *mine = (int *)malloc(10 * sizeof(int));
    char *copy = strdup("text");
    node *n = (node *)calloc(1, sizeof(node));
    int i;
    for (i = 0; i < 10; i++) mine[i] = MYPROC * i;
    there[MYPROC] = mine;
    n->next = n;
    barrier();
    p = there[NEXT];
    CHECK(toproc(p) == NEXT && p[3] == NEXT * 3);
    barrier();
    CHECK(strcmp(copy, "text") == 0 && n->next->v == 0);
    mine = realloc(mine, 1000 * sizeof(int));
    CHECK(mine[9] == MYPROC * 9);
    barrier();
    free(mine);
    free(copy);
    free(n);
    DONE();
}
