/* Atomic procedures: the function, the pointer, the arguments. */
#include <stdio.h>
#include <split-c/split-c.h>
int x;
int f(int *p, int n) { return *p + n; }
void g(int n) { }

int splitc_main()
{
    atomic(f, toglobal(0, &x)); /* error: the function of 'atomic' takes 2 arguments, and here are 1 */
    atomic(x, toglobal(0, &x), 1); /* error: 'atomic' needs a function first */
    atomic(f); /* error: 'atomic' needs a function and a global pointer */
    atomic(f, 3, 4); /* error: 'atomic' needs a pointer */
    atomic(g, toglobal(0, &x)); /* error: the function of an atomic procedure takes a pointer first */
    return 0;
}
