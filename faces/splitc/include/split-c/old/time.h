/* What <time.h> had and has no more. */
#include_next <time.h>
#if !defined CLK_TCK && defined CLOCKS_PER_SEC
#define CLK_TCK CLOCKS_PER_SEC
#endif
