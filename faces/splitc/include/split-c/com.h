/* Split-C: older programs include this part by itself. */
#include <split-c/split-c.h>
