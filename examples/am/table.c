/* A table of counts that is spread over the processes of a job (docs/active-messages.md):
 *
 *   cc table.c -o table -lhamlyn_am
 *   hamlyn run -n 4 ./table 100000
 *
 * Each key has an owner, who alone changes its count: an addition is a request without a reply.
 * When all have added, process 0 gets every part of the table into its own segment, and prints the
 * sum. */
#include <stdio.h>
#include <stdlib.h>

#include <am_spmd.h>

enum { KEYS = 1024, ADD = 1, GOT = 2 };

static uint64_t counts[KEYS]; /* of the own keys; the segment of others' gets */
static uint64_t all[KEYS];    /* process 0: parts of others */
static int parts;

static void check(int code) {
    if (code == AM_OK) return;
    fprintf(stderr, "table: %s\n", AMX_ErrorText());
    exit(1);
}

static void add(void *token, int key, int amount) {
    (void)token;
    counts[key] += (uint64_t)amount;
}

static void got(void *token, void *buf, size_t nbytes) {
    (void)token, (void)buf, (void)nbytes;
    parts++;
}

int main(int argc, char **argv) {
    eb_t bundle;
    ep_t endpoint;
    uint64_t state, sum = 0;
    check(AMX_SPMDStartup(&argc, &argv, 0, 0, NULL, &bundle, &endpoint));
    int procs = AMX_SPMDNumProcs(), proc = AMX_SPMDMyProc();
    int additions = argc > 1 ? atoi(argv[1]) : 100000;
    check(AM_SetHandler(endpoint, ADD, add));
    check(AM_SetHandler(endpoint, GOT, got));
    check(AM_SetSeg(endpoint, proc == 0 ? all : counts, sizeof all));
    check(AM_SetEventMask(bundle, AM_NOTEMPTY));
    /* No process sends before all have set their handlers. */
    check(AMX_SPMDBarrier());

    state = 88172645463325252u + (uint64_t)proc;
    for (int at = 0; at < additions; at++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        int key = (int)(state % KEYS);
        /* It waits for a credit if there is none, and takes what others add meanwhile. */
        check(AM_Request2(endpoint, key % procs, ADD, key, 1));
        if (at % 64 == 0) check(AM_Poll(bundle));
    }
    /* A request has ended when its handler has run and its answer is here. */
    int outstanding = 1;
    while (outstanding > 0) {
        check(AM_Poll(bundle));
        check(AMX_GetOutstanding(endpoint, &outstanding));
    }
    check(AMX_SPMDBarrier());

    if (proc == 0) {
        for (int key = 0; key < KEYS; key++) sum += counts[key];
        for (int from = 1; from < procs; from++) {
            check(AM_GetXfer0(endpoint, from, 0, GOT, 0, sizeof all));
            while (parts < from) check(AM_WaitSema(bundle));
            for (int key = 0; key < KEYS; key++) sum += all[key];
        }
        printf("%d processes added %d each: %llu\n", procs, additions, (unsigned long long)sum);
        fflush(stdout);
        check(sum == (uint64_t)additions * (uint64_t)procs ? AM_OK : AM_ERR_RESOURCE);
    }
    /* The others serve until process 0 has all it wants. */
    return AMX_SPMDExit(0);
}
