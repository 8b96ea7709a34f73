/* What <math.h> had and has no more. */
#include_next <math.h>
#ifndef HUGE
#define HUGE 3.40282347e+38F
#endif
