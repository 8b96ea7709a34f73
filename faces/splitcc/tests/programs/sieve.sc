/* The sieve of Eratosthenes with bits in a spread array of words; a file of results by stdio, read back with scanf.
 * procs: 1 2 3 4
 * output: 1229 primes below 10000
 * output: 205 twins, last 9929 9931
 * output: from the file: 2 3 5 7 11
 */
#include <stdio.h>
#include <split-c/split-c.h>
#include <split-c/control.h>
#include <split-c/io.h>
#include <sys/param.h>
#include <string.h>

#define LIMIT 10000
#define BITS (8 * sizeof(u_int))
#define WORDS howmany(LIMIT, BITS)

#define TST(w, b) ((w) >> (b) & 1)

u_int composite[WORDS]::;

static u_int or_into(w, bits) u_int *w, bits; { return *w |= bits; }

#define MARK(n) atomic(or_into, &composite[(n) / BITS], 1 << (n) % BITS)

int prime(n) { return n > 1 && !TST(composite[n / BITS], n % BITS); }

extern char *mktemp();

splitc_main()
{
    register int i, p;
    int count = 0, twins = 0, last = 0, v;
    char name[MAXPATHLEN];
    FILE *fp;

    for_my_1d(i, WORDS) composite[i] = 0;
    barrier();
    for (p = 2; p * p < LIMIT; p++) {
        if (!prime(p)) continue;
        for (i = p * p + MYPROC * p; i < LIMIT; i += p * PROCS) {
            u_int *w;
            if (toproc(&composite[i / BITS]) == MYPROC && PROCS == 1) { w = (u_int *)&composite[i / BITS]; *w |= 1 << i % BITS; }
            else MARK(i);
        }
        barrier();
    }
    for (i = MYPROC; i < LIMIT; i += PROCS) {
        if (!prime(i)) continue;
        count++;
        if (i + 2 < LIMIT && prime(i + 2)) twins++, last = MAX(last, i);
    }
    count = all_reduce_to_one_add(count), twins = all_reduce_to_one_add(twins), last = all_reduce_to_one_max(last);
    on_one {
        printf("%d primes below %d\n", count, LIMIT);
        printf("%d twins, last %d %d\n", twins, last, last + 2);
        strcpy(name, "/tmp/sieveXXXXXX");
        mktemp(name);
        if ((fp = fopen(name, "w+")) == NULL) { perror(name); exit(1); }
        for (i = 0; i < 30; i++) if (prime(i)) fprintf(fp, "%d\n", i);
        rewind(fp);
        fputs("from the file:", stdout);
        for (i = 0; i < 5 && fscanf(fp, "%d", &v) == 1; i++) printf(" %d", v);
        putc('\n', stdout);
        fclose(fp), unlink(name);
    }
    barrier();
}
