/* Cannon's matrix multiplication (Split-C, Table 2: cannon). Processors form a square; blocks of A go left and blocks of B go
 * up, by bulk stores. Usage: cannon [-n size]; the number of processors is a square. */
#include "report.h"

static double a_at(long i, long j) { return (double)((i * 7 + j * 3) % 11) - 5; }
static double b_at(long i, long j) { return (double)((i * 5 + j * 2) % 13) - 6; }

/* c += a b, for blocks of size n. */
static void multiply_add(double *c, double *a, double *b, int n)
{
    int i, j, k;

    for (i = 0; i < n; i++)
        for (k = 0; k < n; k++) {
            double x = a[i * n + k];
            for (j = 0; j < n; j++)
                c[i * n + j] += x * b[k * n + j];
        }
}

int splitc_main(int argc, char **argv)
{
    int size = argument(argc, argv, "-n", 64L), side = 1, n, i, j, row, column, step, bytes;
    long wrong = 0;
    double seconds;
    char what[80];

    while (side * side < PROCS)
        side++;
    if (side * side != PROCS || size % side != 0)
        refuse("cannon needs a square of processors, and a size that is a multiple of its side");
    n = size / side;
    bytes = n * n * sizeof(double);
    row = MYPROC / side, column = MYPROC % side;
    {
        double A[side][side]::[n][n], B[side][side]::[n][n], A2[side][side]::[n][n], B2[side][side]::[n][n];
        double C[side][side]::[n][n];
        double (*spread a)[n][n] = A, (*spread b)[n][n] = B, (*spread a2)[n][n] = A2, (*spread b2)[n][n] = B2, (*spread t)[n][n];
        double *mine_a = (double *)tolocal(a[MYPROC]), *mine_b = (double *)tolocal(b[MYPROC]);
        double *mine_c = (double *)tolocal(C[row][column]);
        int left = row * side + (column + side - 1) % side, up = (row + side - 1) % side * side + column;

        /* The skew: row r begins r to the left, column c begins c up. */
        for (i = 0; i < n; i++)
            for (j = 0; j < n; j++) {
                mine_a[i * n + j] = a_at(row * n + i, (column + row) % side * n + j);
                mine_b[i * n + j] = b_at((row + column) % side * n + i, column * n + j);
                mine_c[i * n + j] = 0;
            }
        barrier();
        seconds = get_seconds();

        for (step = 0; step < side; step++) {
            mine_a = (double *)tolocal(a[MYPROC]), mine_b = (double *)tolocal(b[MYPROC]);
            if (step < side - 1) {
                bulk_store(&a2[left][0][0], mine_a, bytes);
                bulk_store(&b2[up][0][0], mine_b, bytes);
            }
            multiply_add(mine_c, mine_a, mine_b, n);
            if (step < side - 1) {
                store_sync(2 * bytes);
                barrier();
                t = a, a = a2, a2 = t;
                t = b, b = b2, b2 = t;
            }
        }
        barrier();
        seconds = get_seconds() - seconds;

        on_one {
            double *line = (double *)malloc(size * sizeof(double)), *got = (double *)malloc(size * sizeof(double));
            int k;
            for (i = 0; i < size; i++) {
                for (j = 0; j < size; j++)
                    line[j] = 0;
                for (k = 0; k < size; k++) {
                    double x = a_at(i, k);
                    for (j = 0; j < size; j++)
                        line[j] += x * b_at(k, j);
                }
                for (j = 0; j < side; j++)
                    bulk_read(got + j * n, &C[i / n][j][i % n][0], n * sizeof(double));
                for (j = 0; j < size; j++)
                    wrong += got[j] != line[j];
            }
            free(line);
            free(got);
        }
        barrier();
    }
    sprintf(what, "cannon: %d x %d", size, size);
    return report(what, seconds, wrong);
}
