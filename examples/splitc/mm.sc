/* Blocked matrix multiplication (Split-C, Table 2: mm). Matrices are spread arrays of blocks; the owner of a block of C gets
 * those of A and B that it needs. Usage: mm [-n size] [-b block] */
#include "report.h"

static double a_at(long i, long j) { return (double)((i * 3 + j) % 17) - 8; }
static double b_at(long i, long j) { return (double)((i + j * 5) % 19) - 9; }

int splitc_main(int argc, char **argv)
{
    int size = argument(argc, argv, "-n", 64L), b = argument(argc, argv, "-b", 8L), blocks = size / b;
    int i, j, k, x, y, z;
    long wrong = 0;
    double seconds;
    char what[80];

    if (b <= 0 || size % b != 0)
        refuse("the size must be a multiple of the block");
    {
        double A[blocks][blocks]::[b][b], B[blocks][blocks]::[b][b], C[blocks][blocks]::[b][b];
        double a[2][b][b], bb[2][b][b], (*c)[b], (*la)[b], (*lb)[b];

        for_my_2d(i, j, blocks, blocks) {
            la = tolocal(A[i][j]), lb = tolocal(B[i][j]), c = tolocal(C[i][j]);
            for (x = 0; x < b; x++)
                for (y = 0; y < b; y++) {
                    la[x][y] = a_at(i * b + x, j * b + y);
                    lb[x][y] = b_at(i * b + x, j * b + y);
                    c[x][y] = 0;
                }
        }
        barrier();
        seconds = get_seconds();

        for_my_2d(i, j, blocks, blocks) {
            int now = 0;

            c = tolocal(C[i][j]);
            bulk_get(a[now], A[i][0], b * b * sizeof(double));
            bulk_get(bb[now], B[0][j], b * b * sizeof(double));
            for (k = 0; k < blocks; k++) {
                sync();
                /* The next blocks are under way while these are multiplied. */
                if (k + 1 < blocks) {
                    bulk_get(a[!now], A[i][k + 1], b * b * sizeof(double));
                    bulk_get(bb[!now], B[k + 1][j], b * b * sizeof(double));
                }
                for (x = 0; x < b; x++)
                    for (z = 0; z < b; z++)
                        for (y = 0; y < b; y++)
                            c[x][y] += a[now][x][z] * bb[now][z][y];
                now = !now;
            }
        }
        barrier();
        seconds = get_seconds() - seconds;

        on_one for (i = 0; i < size; i++)
            for (j = 0; j < size; j++) {
                double s = 0;
                for (k = 0; k < size; k++)
                    s += a_at(i, k) * b_at(k, j);
                wrong += s != C[i / b][j / b][i % b][j % b];
            }
        barrier();
    }
    sprintf(what, "mm: %d x %d in blocks of %d", size, size, b);
    return report(what, seconds, wrong);
}
