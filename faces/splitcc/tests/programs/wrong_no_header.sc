/* MYPROC without the header. */
int splitc_main()
{
    return MYPROC; /* error: 'MYPROC' undeclared; include <split-c/split-c.h> */
}
