/* Functions of the C library that were never declared and return pointers or numbers with a point.
 * procs: 1 2
 * output: 1.25 memory 1
 */
#include <split-c/split-c.h>

splitc_main()
{
    char *where, *word, line[20];
    double d;

    strcpy(line, "memory of old");
    word = strtok(line, " ");
    where = malloc(10);
    strcpy(where, word);
    d = atof("1.25");
    on_one printf("%.2f %s %d\n", d, where, getenv("PATH") != 0);
    free(where);
}
