/* A string over several lines, as compilers of the time took it.
 * procs: 1 2
 * output: usage: it's "here"
 * output:   and there 13
 */
#include "check.h"

int splitc_main(int argc, char **argv)
{
    on_one printf("usage: it's \"here\"
  and there %d\n", __LINE__ + 2);
    return 0;
}
