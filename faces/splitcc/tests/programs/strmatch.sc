/* String search (Boyer and Moore, simplified by Horspool) in a text that lies in blocks on the processors.
 * procs: 1 2 3 4
 * output: 'abra': 41
 * output: 'cadabra': 20
 * output: 'zz': 0
 * output: 'a': 102
 */
#include <stdio.h>
#include <string.h>
#include <memory.h>
#include <split-c/split-c.h>
#include <split-c/control.h>
#ifndef TRUE
#define TRUE  (1)
#define FALSE (0)
#endif
#define ASIZE 256
#define XSIZE 64

#define OUTPUT(j) (matches++, (void)(j))

typedef unsigned char uchar;

char *spread blocks;            /* one block of the text on each processor */
int total, per;

static char *pattern_text(n) int n;
{
    static char buffer[2000];
    char *p = buffer;
    buffer[0] = 0;
    while (n-- > 0) { strcat(p, "abracadabra"); p += strlen(p); }
    strcat(buffer, " abra");
    return buffer;
}

void preBmBc(x, m, bmBc) uchar *x; int m, bmBc[]; {
   int i;
   for (i = 0; i < ASIZE; ++i)
      bmBc[i] = m;
   for (i = 0; i < m - 1; ++i)
      bmBc[x[i]] = m - i - 1;
}

int HORSPOOL(x, m, y, n) char *x; int m; char *y; int n; {
   int j, bmBc[ASIZE], matches = 0;
   uchar c;

   preBmBc((uchar *)x, m, bmBc);
   j = 0;
   while (j <= n - m) {
      c = (uchar)y[j + m - 1];
      if (x[m - 1] == c && memcmp(x, y + j, m - 1) == 0)
         OUTPUT(j);
      j += bmBc[c];
   }
   return matches;
}

/* Characters lie in blocks: where is number i? */
char *global place(i) { return (char *global)(blocks + i / per) + i % per; }

splitc_main()
{
    static char *patterns[] = { "abra", "cadabra", "zz", "a", (char *)0 };
    char **p, *text = pattern_text(20), *window;
    int i, lo, hi, count;

    total = strlen(text);
    per = (total + PROCS - 1) / PROCS;
    blocks = all_spread_malloc(PROCS, per);
    on_one for (i = 0; i < total; i++) *place(i) := text[i];
    sync();
    barrier();
    window = (char *)malloc(per + XSIZE);
    for (p = patterns; *p; ++p) {
        int m = strlen(*p), have = 0;
        lo = MYPROC * per, hi = lo + per + m - 1;
        if (hi > total) hi = total;
        for (i = lo; i < hi; ) {
            int piece = per - i % per;
            if (i + piece > hi) piece = hi - i;
            bulk_read(window + have, place(i), piece);
            have += piece, i += piece;
        }
        count = HORSPOOL(*p, m, window, have);
        count = all_reduce_to_one_add(count);
        on_one printf("'%s': %d\n", *p, count);
    }
    all_spread_free(blocks);
}
