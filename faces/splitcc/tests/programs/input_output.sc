/* Text in the order of processors, and spread arrays in files.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"
#include <split-c/io.h>
#include <errno.h>
#include <unistd.h>

#define COUNT 1000
#define BLOCKS 7
typedef struct { char c[5]; } five_t;
typedef double block_t[1024];

static char path[64];

int splitc_main(int argc, char **argv)
{
    five_t *spread five = all_spread_malloc(COUNT, sizeof(five_t)), *spread again = all_spread_malloc(COUNT, sizeof(five_t));
    block_t *spread blocks = all_spread_malloc(BLOCKS, sizeof(block_t)), *spread back = all_spread_malloc(BLOCKS, sizeof(block_t));
    int i, j;
    FILE *file;

    i = getpid();
    sprintf(path, "/tmp/splitc-io-%d", all_bcast(i));
    for_my_1d(i, COUNT) sprintf(((five_t *)(five + i))->c, "%04d", i);
    for_my_1d(i, BLOCKS) for (j = 0; j < 1024; j++) blocks[i][j] = i + j / 1024.0;

    CHECK(all_write_file(path, five, COUNT, sizeof(five_t)) == COUNT);
    on_one {
        char text[6] = "";
        file = fopen(path, "r");
        for (i = 0; i < COUNT; i++) CHECK(fread(text, 5, 1, file) == 1 && atoi(text) == i);
        CHECK(fgetc(file) == EOF);
        fclose(file);
    }
    CHECK(all_read_file(path, again, COUNT, sizeof(five_t)) == COUNT);
    for (i = 0; i < COUNT; i++) { five_t f = again[i]; CHECK(atoi(f.c) == i); }
    barrier();
    /* Of a longer array, the elements that are there. */
    for_my_1d(i, COUNT) again[i].c[0] = 'x';
    barrier();
    on_one CHECK(truncate(path, 5 * 37 + 3) == 0);
    barrier();
    CHECK(all_read_file(path, again, COUNT, sizeof(five_t)) == 37);
    for (i = 0; i < COUNT; i++) CHECK((again[i].c[0] == 'x') == (i >= 37));
    barrier();
    CHECK(all_read_file(path, again + 1, 3, sizeof(five_t)) == 3 && again[3].c[3] == '2');

    CHECK(all_write_file(path, blocks, BLOCKS, sizeof(block_t)) == BLOCKS);
    CHECK(all_read_file(path, back, BLOCKS, sizeof(block_t)) == BLOCKS);
    for (i = 0; i < BLOCKS; i++) CHECK(back[i][0] == i && back[i][1023] == i + 1023 / 1024.0);
    barrier();
    on_one CHECK(unlink(path) == 0);
    barrier();
    errno = 0;
    CHECK(all_read_file(path, back, BLOCKS, sizeof(block_t)) == -1 && errno == ENOENT);
    CHECK(all_write_file("/no/such/directory", back, BLOCKS, sizeof(block_t)) == -1 && errno == ENOENT);

    /* Processor 0 writes what all print: into a file, to look at it. */
    on_one { fflush(stdout); j = dup(1); CHECK(freopen(path, "w", stdout) != NULL); }
    for (i = 0; i < 2; i++) all_printf("%d of %d: %*d%s\n", MYPROC, PROCS, MYPROC * 900, i, i ? "" : "!");
    all_printf("%s", MYPROC ? "" : "end\n");
    on_one {
        fflush(stdout), dup2(j, 1);
        file = fopen(path, "r");
        for (i = 0; i < 2; i++)
            for (j = 0; j < PROCS; j++) {
                int proc, procs, last;
                char mark = 0;
                CHECK(fscanf(file, "%d of %d: %d%c", &proc, &procs, &last, &mark) == 4);
                CHECK(proc == j && procs == PROCS && last == i && mark == (i ? '\n' : '!'));
            }
        { char end[4]; CHECK(fscanf(file, "%3s", end) == 1 && !strcmp(end, "end")); }
        fclose(file), unlink(path);
    }
    barrier();
    DONE();
}
