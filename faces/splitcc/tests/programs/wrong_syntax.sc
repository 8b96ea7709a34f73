/* Several errors of syntax in one run. */
#include <stdio.h>
#include <split-c/split-c.h>
int splitc_main()
{
    int a;
    a = ; /* error: expected an expression before ';' */
    a = (1 + 2; /* error: expected ')' to close the parenthesis before ';' */
    if a == 1) a = 2; /* error: expected '(' after 'if' before 'a' */
    a = 1 + * ; /* error: expected an expression before ';' */
    else a = 1; /* error: 'else' without an 'if' before it */
    a[ = 3; /* error: expected an expression before '=' */
    return 0;
}
