/* Four ways to transpose a matrix, chosen by a table of functions; flags in an old-style argument loop.
 * procs: 1 2 3 4
 * output: read: ok
 * output: get: ok
 * output: put: ok
 * output: store: ok
 * output: bulk: ok
 */
#include <stdio.h>
#include <split-c/split-c.h>
#include <split-c/control.h>
#include <split-c/bulk.h>

#define SIZE 24
#define ELT(i,j) ((i) * 1000.0 + (j))

static double A[SIZE]::[SIZE], B[SIZE]::[SIZE];

typedef void VOIDFN();

static void by_read() {
    int i, j;
    for_my_1d(i, SIZE) for (j = 0; j < SIZE; j++) B[i][j] = A[j][i];
}

static void by_get() {
    int i, j; double row[SIZE], *mine;
    for_my_1d(i, SIZE) {
        for (j = 0; j < SIZE; j++) row[j] := A[j][i];
        sync();
        mine = tolocal(B[i]);
        for (j = 0; j < SIZE; j++) *mine++ = row[j];
    }
}

static void by_put() {
    int i, j;
    for_my_1d(i, SIZE) for (j = 0; j < SIZE; j++) B[j][i] := A[i][j];
    sync();
}

static void by_store() {
    int i, j; double *global p;
    for_my_1d(i, SIZE) {
        double *mine = (double *)&A[i][0];
        for (j = 0; j < SIZE; j++) {
            p = &B[j][i];
            *p :- mine[j];
        }
    }
    all_store_sync();
}

static void by_blocks() {
    int i, j;
    char *buffer = (char *)malloc(SIZE * SIZE * sizeof(double));
    double (*whole)[SIZE] = (double (*)[SIZE]) buffer;
    for (i = 0; i < SIZE; i++) bulk_get(whole[i], &A[i][0], SIZE * sizeof(double));
    sync();
    for_my_1d(i, SIZE) {
        double column[SIZE];
        for (j = 0; j < SIZE; j++) column[j] = whole[j][i];
        bulk_put(B[i], column, sizeof(column));
        sync();
    }
    free(buffer);
}

struct method { char *name; VOIDFN *run; } methods[] = {
    { "read", by_read }, { "get", by_get }, { "put", by_put }, { "store", by_store }, { "bulk", by_blocks }, { 0 }
};

static int check()
{
    int i, j, wrong = 0;
    for_my_1d(i, SIZE) for (j = 0; j < SIZE; j++) if (B[i][j] != ELT(j, i)) wrong++;
    return all_reduce_to_all_add(wrong) == 0;
}

int splitc_main(int argc, char **argv)
{
    register struct method *m;
    int i, j;
    double seconds;

    for_my_1d(i, SIZE) for (j = 0; j < SIZE; j++) A[i][j] = ELT(i, j);
    for (m = methods; m->name; m++) {
        int good;
        for_my_1d(i, SIZE) for (j = 0; j < SIZE; j++) B[i][j] = -1;
        barrier();
        seconds = get_seconds();
        (*m->run)();
        barrier();
        seconds = get_seconds() - seconds;
        good = check();
        on_one printf("%s: %s\n", m->name, good ? "ok" : "wrong");
    }
    return (int)(seconds < 0);
}
