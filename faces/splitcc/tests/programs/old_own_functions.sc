/* Functions and variables of a program by names that headers of today declare; declarations of library functions as they were.
 * procs: 1 2 3
 * output: 65 2 3 12 2.5 8 x
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <unistd.h>
#include <time.h>
#include <split-c/split-c.h>

extern char *malloc(), *sprintf(), *strcpy();
extern int printf(), free(), exit();
double sqrt(), atof();
long time();
extern char *sys_errlist[];
extern int sys_nerr;
int debug;
double y1 = 2.5, j0;
static int clock = 8, link[3];
int getline(), index();
getline(s, lim) char s[]; int lim; { s[0] = 'A'; s[1] = 0; return lim; }
int round(x) double x; { return x + .5; }
int log2(n) { int k = 0; while (n >>= 1) k++; return k; }
int index(i, j) { return i * 10 + j; }
void dprintf(f, a) char *f; { if (debug) printf(f, a); }
char *strdup(s) char *s; { char *p = malloc(strlen(s) + 1); strcpy(p, s); return p; }
static select(a, i) int a[]; { return a[i]; }
div(a, b) { return a / b; }

int splitc_main()
{
    char b[10], t[40];
    int *global g;
    link[1] = 4;
    g = (int *global)malloc(sizeof(int));
    *g = div(7, 2) + select(link, 1);
    dprintf("%d\n", 1);
    sprintf(t, "%d %d %.1f %d", round(1.6) + (getline(b, 9) != 9), log2(8), y1, clock);
    if (*g != 7 || strcmp(t, "2 3 2.5 8") || strcmp(strdup(b), "A") || sqrt(4.) != 2. || atof("0.5") != 0.5) exit(1);
    if (HUGE < 1e30 || CLK_TCK <= 0 || time((long *)0) < 1000 || sys_nerr < 100 || strcmp(sys_errlist[2], strerror(2))) exit(2);
    on_one printf("%d %d %d %d %.1f %d %s\n", b[0], round(1.6), log2(8), index(1, 2), y1, clock, strdup("x"));
    free((char *)g);
    return 0;
}
