/* Declarations of one name that contradict each other. */
#include <split-c/split-c.h>
int a[10]::;
extern int a[10]::;
int a[11]::; /* error: conflicting sizes */
int *global p;
int *p; /* error: declared as a global pointer before, and is a local pointer here */
int *spread q;
extern int *spread q;
int *global q; /* error: declared as a spread pointer before */
int b[4]::[3];
extern int b[4]::[5]; /* error: conflicting sizes */
void h(int *global p);
void h(int *p) { } /* error: conflicting types for 'h' */
void i(int *global p);
void i(p) int *global p; { }
int *global j();
int *global j(int n) { return p; }

int splitc_main() { return 0; }
