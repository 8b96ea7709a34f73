/* A program may have functions named like operations of the library.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int exchange(int n) { return n + 1; }
int all_scan_add_ui(int a, int b) { return a + b; }

int splitc_main(int argc, char **argv)
{
    CHECK(exchange(3) == 4);
    CHECK(all_scan_add_ui(1, 2) == 3);
    DONE();
}
