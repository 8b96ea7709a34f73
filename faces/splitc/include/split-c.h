/* Split-C: some programs include it by this name. */
#include <split-c/split-c.h>
