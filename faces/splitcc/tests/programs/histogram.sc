/* A histogram of classes of characters: counters in a spread array, fetch-and-add and atomic procedures, a large switch.
 * procs: 1 2 3 4
 * output: letters 2600 digits 400 spaces 290 punctuation 110 others 0
 * output: median class 0, maximum 2600, adds 3400
 */
#include <stdio.h>
#include <split-c/split-c.h>
#include <split-c/control.h>
#include <split-c/reduce.h>

enum class { LETTER, DIGIT, SPACE, PUNCTUATION, OTHER, CLASSES };
typedef enum class class_t;
static char *class_name[CLASSES] = { "letters", "digits", "spaces", "punctuation", "others" };
int counts[CLASSES]::;
long adds;

static class_t classify(c)
{
    switch (c) {
    case 'a': case 'b': case 'c': case 'd': case 'e': case 'f': case 'g':
    case 'h': case 'i': case 'j': case 'k': case 'l': case 'm': case 'n':
    case 'o': case 'p': case 'q': case 'r': case 's': case 't': case 'u':
    case 'v': case 'w': case 'x': case 'y': case 'z':
        return LETTER;
    case 'A': case 'B': case 'C': case 'D': case 'E': case 'F': case 'G':
    case 'H': case 'I': case 'J': case 'K': case 'L': case 'M': case 'N':
    case 'O': case 'P': case 'Q': case 'R': case 'S': case 'T': case 'U':
    case 'V': case 'W': case 'X': case 'Y': case 'Z':
        return classify(c - 'A' + 'a');
    case '0': case '1': case '2': case '3': case '4':
    case '5': case '6': case '7': case '8': case '9':
        return DIGIT;
    case ' ': case '\t': case '\n': case '\v': case '\f': case '\r':
    case '\177': case '\033':
        return SPACE;
    default:
        if (c < ' ' || c >= 0200) return OTHER;
        /* fall through */
    case '.': case ',': case ';': case '!': case '?':
    case '\'': case '"': case '\\':
        return PUNCTUATION;
    }
}

bump(where, by, total) int *where, by; long *global total;
{
    *where += by;
}

static void add(c, k) class_t c;
{
    if (c == PUNCTUATION) fetch_and_add(&counts[c], 1);
    else atomic(bump, &counts[c], 1, toglobal(0, &adds));
}

splitc_main()
{
    static char sentence[] = "Split-C 1993: a language, \"spread\" over 4 nodes.\n";
    int i, n = 0, hundred;
    for_my_1d(i, CLASSES) counts[i] = 0;
    barrier();
    for (hundred = 0; hundred < 100; hundred++) {
        static char data[] = "abcdefghijklmnopqrstuvwxyz0123";
        if (hundred % PROCS == MYPROC)
            for (i = 0; data[i]; i++) add(classify(data[i]), i), n++;
        if (hundred % 10 == 0 && hundred / 10 % PROCS == MYPROC) {
            for (i = 0; i < 29; i++) add(classify(' '), i), n++;
            for (i = 0; i < 11; i++) add(classify("!?.,;'\"\\-+*"[i]), i), n++;
        }
    }
    sync();
    barrier();
    on_one if (classify(sentence[0]) != LETTER || classify(sentence[5]) != PUNCTUATION || classify(0x80) != OTHER) printf("wrong\n");
    n = all_reduce_to_one_add(n);
    on_one {
        class_t c; int most = 0, seen = 0, median = -1, all = 0;
        for (c = LETTER; c < CLASSES; c++) {
            int v = counts[c];
            printf("%s %d%s", class_name[c], v, c == OTHER ? "\n" : " ");
            if (v > most) most = v;
            all += v;
        }
        for (c = LETTER; median < 0; c++) if ((seen += counts[c]) * 2 >= all) median = c;
        printf("median class %d, maximum %d, adds %d\n", median, most, n);
    }
    barrier();
    return 0;
}
