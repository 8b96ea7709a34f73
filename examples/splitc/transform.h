/* The Fourier transform over all processors, with one remap between its two halves (Split-C, Table 2: fft, fftb).
 *
 * Point i begins on processor i mod P, where the butterflies of the first stages find both of their points. The remap brings it
 * to processor i / (n / P), where those of the last lg P stages do. The program defines remap(). */
#include "report.h"

typedef struct { double re, im; } point;

static void remap(point *mine, point *spread blocks, long n, long here);

static point input_at(long i)
{
    unsigned long x = (unsigned long)i * 0x9e3779b97f4a7c15ul;
    point p;

    x ^= x >> 29;
    p.re = (double)(x & 0xffff) / 65536 - 0.5;
    p.im = (double)((x >> 16) & 0xffff) / 65536 - 0.5;
    return p;
}

/* One butterfly: the lower point is turned by w. */
#define BUTTERFLY(a, b, w)                                                                                              \
    {                                                                                                                   \
        point s, d;                                                                                                     \
        s.re = (a).re + (b).re, s.im = (a).im + (b).im;                                                                 \
        d.re = (a).re - (b).re, d.im = (a).im - (b).im;                                                                 \
        (a) = s;                                                                                                        \
        (b).re = d.re * (w).re - d.im * (w).im;                                                                         \
        (b).im = d.re * (w).im + d.im * (w).re;                                                                         \
    }

static point root(long k, long n)
{
    point w;
    double angle = -2 * M_PI * k / n;

    w.re = cos(angle), w.im = sin(angle);
    return w;
}

/* The serial transform, by another way: recursion. `step` is the distance of its points in `in`. */
static void serial(point *in, point *out, long n, long step, point *roots, long all)
{
    long k;

    if (n == 1) {
        out[0] = in[0];
        return;
    }
    serial(in, out, n / 2, 2 * step, roots, all);
    serial(in + step, out + n / 2, n / 2, 2 * step, roots, all);
    for (k = 0; k < n / 2; k++) {
        point w = roots[k * (all / n)], a = out[k], b = out[k + n / 2], t;
        t.re = b.re * w.re - b.im * w.im, t.im = b.re * w.im + b.im * w.re;
        out[k].re = a.re + t.re, out[k].im = a.im + t.im;
        out[k + n / 2].re = a.re - t.re, out[k + n / 2].im = a.im - t.im;
    }
}

static long reversed(long i, int bits)
{
    long r = 0;

    while (bits-- > 0)
        r = r << 1 | (i & 1), i >>= 1;
    return r;
}

/* The results lie in the order of reversed bits. */
static long compare_with_serial(point *spread blocks, long n, long here, int bits)
{
    long i, wrong = 0;
    int p;

    barrier();
    on_one {
        point *in = (point *)malloc(n * sizeof(point)), *out = (point *)malloc(n * sizeof(point));
        point *roots = (point *)malloc(n / 2 * sizeof(point) + sizeof(point));
        if (!in || !out || !roots) {
            fprintf(stderr, "no memory for %ld points on processor 0\n", n);
            exit(1);
        }
        for (i = 0; i < n; i++)
            in[i] = input_at(i);
        for (i = 0; i < n / 2; i++)
            roots[i] = root(i, n);
        serial(in, out, n, 1L, roots, n);
        for (p = 0; p < PROCS; p++)
            bulk_get(in + p * here, (point *global)(blocks + p), here * sizeof(point));
        sync();
        for (i = 0; i < n; i++) {
            point got = in[i], want = out[reversed(i, bits)];
            if (!(fabs(got.re - want.re) + fabs(got.im - want.im) < 1e-9 * n))
                wrong++;
        }
        free(in);
        free(out);
        free(roots);
    }
    barrier();
    return wrong;
}

int splitc_main(int argc, char **argv)
{
    long n = argument(argc, argv, "-n", 1L << 14), here = n / PROCS, i, half, j;
    point *spread blocks, *mine, *block, *roots;
    int bits = 0;
    double seconds;
    char what[80];

    while (1L << bits < n)
        bits++;
    if (1L << bits != n || (PROCS & (PROCS - 1)) != 0 || here < PROCS)
        refuse("points and processors must be powers of two, with at least as many points for each processor as there are processors");
    blocks = all_spread_malloc(PROCS, here * sizeof(point));
    mine = (point *)malloc(here * sizeof(point));
    roots = (point *)malloc((n / 2 + 1) * sizeof(point));
    for (i = 0; i < here; i++)
        mine[i] = input_at(i * PROCS + MYPROC);
    for (i = 0; i <= n / 2; i++)
        roots[i] = root(i, n);
    barrier();
    seconds = get_seconds();

    /* Distances of n/2 down to P: both points are here. */
    for (half = n / 2; half >= PROCS; half /= 2)
        for (i = 0; i < here; i++) {
            long global_i = i * PROCS + MYPROC;
            if ((global_i & half) == 0) {
                long k = global_i % half;
                BUTTERFLY(mine[i], mine[i + half / PROCS], roots[k * (n / (2 * half))]);
            }
        }
    barrier();
    remap(mine, blocks, n, here);
    barrier();
    block = (point *)(blocks + MYPROC);
    for (; half >= 1; half /= 2)
        for (i = 0; i < here; i += 2 * half)
            for (j = 0; j < half; j++)
                BUTTERFLY(block[i + j], block[i + j + half], roots[j * (n / (2 * half))]);
    barrier();

    seconds = get_seconds() - seconds;
    sprintf(what, "%s: %ld points", NAME, n);
    return report(what, seconds, compare_with_serial(blocks, n, here, bits));
}
