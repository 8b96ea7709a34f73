/* A type that was never declared. */
#include <stdio.h>
#include <split-c/split-c.h>
foo x; /* error: unknown type name 'foo' */
int f(bar y); /* error: unknown type name 'bar' */
int g(int a, bar *global b); /* error: unknown type name 'bar' */
struct s {
    int a;
    baz b; /* error: expected a field before 'baz' */
};
