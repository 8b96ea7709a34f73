/* LU decomposition with partial pivoting; columns are dealt out cyclically.
 * procs: 1 2 3 4
 * output: LU 24: |Ax - b| is small
 */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <split-c/split-c.h>
#include <split-c/control.h>
#include <split-c/com.h>

#ifndef N
# define N 24
#endif
#define abs_(x) (((x) >= 0) ? (x) : -(x))

typedef double column[N];

/* A[j] is column j, on processor j mod PROCS. */
column *spread A;
int *spread ipvt;

static double rnd(seed) int *seed; {
    *seed = (*seed * 3125) % 65536;
    return (*seed - 32768.0) / 16384.0;
}

static void matgen(a, b) column *a; double b[]; {
    int init = 1325, i, j;
    for (j = 0; j < N; j++) for (i = 0; i < N; i++) a[j][i] = rnd(&init);
    for (i = 0; i < N; i++) b[i] = 0.0;
    for (j = 0; j < N; j++) for (i = 0; i < N; i++) b[i] += a[j][i];
}

int idamax(n, dx) int n; double dx[]; {
    double dmax; int i, itemp = 0;
    if (n < 1) return(-1);
    if (n == 1) return(0);
    dmax = fabs((double)dx[0]);
    for (i = 1; i < n; i++) {
        if (fabs((double)dx[i]) > dmax) { itemp = i; dmax = fabs((double)dx[i]); }
    }
    return (itemp);
}

void daxpy(n, da, dx, dy) register int n; register double da; double *dx, *dy; {
    register int i, m;
    if (n <= 0) return;
    if (da == 0.0) return;
    m = n % 4;
    if (m != 0) for (i = 0; i < m; i++) dy[i] = dy[i] + da*dx[i];
    if (n < 4) return;
    for (i = m; i < n; i = i + 4) {
        dy[i] = dy[i] + da*dx[i];
        dy[i+1] = dy[i+1] + da*dx[i+1];
        dy[i+2] = dy[i+2] + da*dx[i+2];
        dy[i+3] = dy[i+3] + da*dx[i+3];
    }
}

static void factor() {
    column pivot;
    int k, j, p, i;
    double t;

    for (k = 0; k < N - 1; k++) {
        on_proc (k % PROCS) {
            double *c = (double *)(A + k);
            p = k + idamax(N - k, c + k);
            ipvt[k] = p;
            t = c[p]; c[p] = c[k]; c[k] = t;
            t = -1.0 / c[k];
            for (i = k + 1; i < N; i++) c[i] *= t;
        }
        barrier();
        bulk_read(pivot, (void *global)(A + k), sizeof(column));
        p = ipvt[k];
        for (j = k + 1 + (MYPROC - (k + 1) % PROCS + PROCS) % PROCS; j < N; j += PROCS) {
            double *c = *tolocal(A + j);
            t = c[p];
            if (p != k) { c[p] = c[k]; c[k] = t; }
            daxpy(N - (k + 1), t, &pivot[k+1], c + k + 1);
        }
    }
    on_proc ((N - 1) % PROCS) ipvt[N-1] = N - 1;
    barrier();
}

static void solve(b) double *b; {
    int k, p; double t; column c;
    for (k = 0; k < N - 1; k++) {
        p = ipvt[k]; t = b[p];
        if (p != k) b[p] = b[k], b[k] = t;
        bulk_get(c, (void *global)&A[k], sizeof c);
        sync();
        daxpy(N - (k + 1), t, &c[k+1], &b[k+1]);
    }
    for (k = N - 1; k >= 0; k--) {
        bulk_read(c, (char *global)&A[k][0], sizeof c);
        b[k] /= c[k];
        daxpy(k, -b[k], c, b);
    }
}

static void *check_malloc(n) unsigned n; { void *p = malloc(n); if (!p) { perror("malloc"); exit(2); } return p; }

splitc_main(int argc, char *argv[])
{
    column *whole; double *b, *x, worst = 0.0; int i, j;

    A = (column *spread)all_spread_malloc(N, sizeof(column));
    ipvt = (int *spread)all_spread_malloc(N, sizeof(int));
    whole = (column *)check_malloc(N * sizeof(column));
    b = (double *)check_malloc(N * sizeof(double));
    x = (double *)check_malloc(N * sizeof(double));
    matgen(whole, b);
    for_my_1d (j, N) for (i = 0; i < N; i++) A[j][i] = whole[j][i];
    barrier();
    factor();
    on_one {
        for (i = 0; i < N; i++) x[i] = b[i];
        solve(x);
        for (i = 0; i < N; i++) {
            double s = -b[i];
            for (j = 0; j < N; j++) s += whole[j][i] * x[j];
            if (abs_(s) > worst) worst = abs_(s);
            if (abs_(x[i] - 1.0) > 1e-8) printf("x[%d] = %g\n", i, x[i]);
        }
        printf("LU %d: |Ax - b| is %s\n", N, worst < 1e-10 ? "small" : "LARGE");
    }
    barrier();
    exit(0);
}
