/* Accesses that may be under way together give what they give one by one.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int a[32], b[32];
struct point { int x, y; struct point *global next; } here;

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, a), *global q = toglobal(LAST, b);
    double *spread s = all_spread_malloc(64, sizeof(double));
    int mine[32], copy[32], i, n = 0, t;
    struct point *global r = toglobal(NEXT, &here);
    for (i = 0; i < 32; i++) { a[i] = 100 * MYPROC + i; b[i] = -i; mine[i] = 7 * i; }
    here.x = 3; here.y = 4; here.next = r;
    for_my_1d(i, 64) s[i] = i;
    barrier();
    t = p[3] + q[4] * 2 - (*p + p[1]);
    CHECK(t == 100 * NEXT + 3 - 8 - (200 * NEXT + 1));
    t = r->x * r->x + r->y * r->y + r->next->x;
    CHECK(t == 28);
    n += p[2] + p[1];
    CHECK(n == 200 * NEXT + 3);
    t = p[q[5] + 6] + q[0];
    CHECK(t == 100 * NEXT + 1);
    for (i = 1; i < 63; i++) { double d; d = s[i - 1] + s[i + 1] - 2 * s[i]; CHECK(d == 0); }
    for (i = 0; i < 32; i++) copy[i] = p[i];
    for (i = 0; i < 32; i++) CHECK(copy[i] == 100 * NEXT + i);
    for (i = 31, t = 0; i >= 0; i--, t++) { copy[t] = q[i]; }
    for (i = 0; i < 32; i++) CHECK(copy[i] == i - 31);
    barrier();
    for (i = 0; i < 32; i++) p[i] = mine[i] + i;
    CHECK(p[31] == 8 * 31);
    barrier();
    CHECK(a[5] == 40);
    barrier();
    p[0] = p[1] + p[2];
    CHECK(p[0] == 24);
    barrier();
    all_spread_free(s);
    DONE();
}
