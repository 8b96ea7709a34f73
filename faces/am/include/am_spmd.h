/* Programs that are started as several processes, by `hamlyn run -n N program`, mpirun or srun, or
 * by themselves.
 *
 * AMX_SPMDStartup gives each process a bundle with an endpoint that has all processes mapped:
 * translation i is process i. Each endpoint has a tag of its own, which AM_GetTranslationTag
 * tells.
 *
 * Collective operations (AMX_SPMDBarrier, AllGather, Broadcast, and AMX_SPMDExit(0)) are called by
 * all processes in the same order. They run handlers of the bundle of the start meanwhile, and go
 * by process 0, so they suit a start and an end better than a loop. If a process is gone they
 * return AM_ERR_RESOURCE, and after HAMLYN_BARRIER_TIMEOUT seconds, if that is set. */
#ifndef AM_SPMD_H
#define AM_SPMD_H

#include <stdlib.h>

#include "am.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Starts this process; returns when all have started, or after HAMLYN_START_TIMEOUT seconds (60)
 * with AM_ERR_RESOURCE.
 *
 * `nproc`: the number of processes; 0 for as many as the launcher started. If no launcher did and
 * it is more than 1, the process becomes `hamlyn run -n nproc` of the same program and arguments
 * (HAMLYN_COMMAND names another command). `depth` is a hint that changes nothing; `reserved` is
 * not read. AM_ERR_IN_USE if the program has bundles already. */
static inline int AMX_SPMDStartup(int *argc, char ***argv, int nproc, int depth, void *reserved, eb_t *bundle, ep_t *endpoint) {
    (void)depth;
    (void)reserved;
    return hamlyn_am_spmd_start(argc, argv, nproc, bundle, endpoint);
}
/* The forms of AMMPI (6 arguments: no nproc, and the place of a network's number for `reserved`)
 * and of AMUDP (8: a function that starts processes and that place) mean the same; the place gets
 * 0. */
static inline int AMX_SPMDStartup6(int *argc, char ***argv, int depth, uint64_t *network, eb_t *bundle, ep_t *endpoint) {
    if (network) *network = 0;
    return AMX_SPMDStartup(argc, argv, 0, depth, NULL, bundle, endpoint);
}
static inline int AMX_SPMDStartup8(int *argc, char ***argv, int nproc, int depth, void *spawn, uint64_t *network, eb_t *bundle,
                                   ep_t *endpoint) {
    if (network) *network = 0;
    return AMX_SPMDStartup(argc, argv, nproc, depth, spawn, bundle, endpoint);
}
#define AMX_SPMDStartup(...) \
    HAMLYN_AM_START_(__VA_ARGS__, AMX_SPMDStartup8, AMX_SPMDStartup, AMX_SPMDStartup6, 0)(__VA_ARGS__)
#define HAMLYN_AM_START_(a, b, c, d, e, f, g, h, name, ...) name
/* Always 1: the launcher is another program. */
static inline int AMX_SPMDIsWorker(char **argv) {
    (void)argv;
    return 1;
}
/* The number of processes; 0 before the start. */
static inline int AMX_SPMDNumProcs(void) { return hamlyn_am_spmd_num_procs(); }
/* The number of this process; -1 before the start. */
static inline int AMX_SPMDMyProc(void) { return hamlyn_am_spmd_my_proc(); }
static inline int AMX_SPMDBarrier(void) { return hamlyn_am_spmd_barrier(); }
/* `dest` gets the `nbytes` (64 MiB at most) of each process, in their order. */
static inline int AMX_SPMDAllGather(const void *source, void *dest, size_t nbytes) {
    return hamlyn_am_spmd_all_gather(source, dest, nbytes);
}
/* All get the bytes of process `root`. */
static inline int AMX_SPMDBroadcast(void *data, size_t nbytes, int root) { return hamlyn_am_spmd_broadcast(data, nbytes, root); }
/* The function is called by AMX_SPMDExit before it ends the process. */
static inline int AMX_SPMDSetExitCallback(void (*callback)(int)) { return hamlyn_am_spmd_set_exit_callback(callback); }
/* Ends the process. With 0 when all processes have called it, and it serves them until then; with
 * another status at once, and the launcher ends the others. Returns only in a handler
 * (AM_ERR_RESOURCE) and before the start (AM_ERR_NOT_INIT). A process that is waited for and gone
 * makes the status 75. */
static inline int AMX_SPMDExit(int status) { return hamlyn_am_spmd_exit(status); }
/* The environment is the launcher's on all processes. */
static inline const char *AMX_SPMDgetenvMaster(const char *name) { return getenv(name); }

#ifdef __cplusplus
}
#endif

#endif
