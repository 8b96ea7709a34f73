/* Split-C: who does what (Split-C 2.2). */
#ifndef SPLIT_C_CONTROL_H
#define SPLIT_C_CONTROL_H

/* One statement or block, on processor 0, or on one of them. */
#define on_one if (splitc_state.proc == 0)
#define on_proc(p) if (splitc_state.proc == (p))

/* The indices of a spread array whose elements lie here. */
#define for_my_1d(i, n) for ((i) = splitc_state.proc; (i) < (n); (i) += splitc_state.procs)
#define for_my_1D(i, n) for_my_1d(i, n)
#define for_my_2D(i, j, n, m) for_my_2d(i, j, n, m)
#define for_my_2d(i, j, n, m)                                                                                           \
    for ((i) = splitc_state.proc / (m), (j) = splitc_state.proc % (m); (i) < (n);                                        \
         (j) += splitc_state.procs, (i) += (j) / (m), (j) %= (m))

#endif
