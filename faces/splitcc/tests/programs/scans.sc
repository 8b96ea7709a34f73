/* Scans over this processor and those before it.
 * procs: 1 2 3 4
 * output: ok
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    CHECK(all_scan_add(MYPROC + 1) == (MYPROC + 1) * (MYPROC + 2) / 2);
    CHECK(all_scan_max(10 - MYPROC) == 10 && all_scan_min(10 - MYPROC) == 10 - MYPROC);
    CHECK(all_scan_add_d(0.5) == 0.5 * (MYPROC + 1));
    DONE();
}
