/* C of later years and GNU's extensions beside global places.
 * procs: 1 2 3
 * output: ok
 */
#include "check.h"
#include <stdint.h>
#include <stdbool.h>

_Static_assert(sizeof(int *global) == 8, "a global pointer is a word");
int x;
struct flexible { int n; int list[]; };
_Alignas(64) int aligned[16];
__thread int of_thread;
static inline bool is_even(int n) { return n % 2 == 0; }
#define KIND(e) _Generic((e), int: 1, double: 2, default: 3)

int splitc_main(int argc, char **argv)
{
    int *global p = toglobal(NEXT, &x);
    x = 6 + MYPROC;
    barrier();
    __auto_type q = p;
    __auto_type v = *q;
    CHECK(v == 6 + NEXT && *q == v && q[0] == v);
    for (int i = 0, *l = aligned; i < 16; i++) l[i] = *p * i; // a comment of C99
    CHECK(aligned[3] == 3 * *p);
    struct flexible *f = malloc(sizeof *f + 2 * sizeof(int));
    f->n = 2, f->list[1] = *p;
    struct flexible *global g = f;
    CHECK(g->list[1] == 6 + NEXT && g->n == 2);
    free(f);
    int twice(int n) { return 2 * n + *p * 0; }
    CHECK(twice(*p) == 2 * (6 + NEXT));
    void *labels[] = { &&one, &&two };
    goto *labels[*p > 0];
one:
    CHECK(0);
two:
    CHECK(KIND(1.5) == 2 && KIND(3) == 1 && __builtin_expect(*p > 0, 1));
    int value = 3;
    __asm__ volatile("addl %1, %0" : "+r"(value) : "r"(*p));
    CHECK(value == 9 + NEXT);
    uint64_t wide = (uint64_t)*p << 40;
    CHECK(wide >> 40 == 6 + NEXT && is_even(2) && of_thread == 0);
    CHECK((*p ?: 4) == 6 + NEXT);
    const char *text = "a" "b";
    CHECK(__builtin_strlen(text) == 2 && sizeof(text) == 8 && __func__[0] == 's');
    _Complex double z = 2.0;
    CHECK(__real__ z == *toglobal(MYPROC, &(double){ 2.0 }));
    DONE();
}
