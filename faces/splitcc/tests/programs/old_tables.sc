/* Extern implicit things, tables of functions, old signal and time code, strange spacing, #if 0 with bad tokens.
 * procs: 1 2 3 4
 * output: ok 10
 */
#include <stdio.h>
#include <ctype.h>
#include <sys/time.h>
#include <sys/signal.h>
#include <errno.h>
#include <split-c/split-c.h>
#include <split-c/control.h>
#if 0
this isn't C: don't read it, it's "broken
#endif
#ifdef notdef
' lone quote
#endif
#define begin {
#define end }
#define then
#define UNTIL(c) while (!(c))
#define forever for (;;)
#define global_int int *global
#undef MAX
#define MAX(a,b) (((a)>(b))?(a):(b))
#define PRINT3(fmt,a,b,c) printf(fmt,a,b,c)
#define XCAT(a,b) a##b
#define NAME(n) XCAT(var_, n)
#define QUOTE(s) #s
extern errno_of ();
extern void (*handlers [])();
typedef int (*PFI) (), BOOL;
typedef char *STRING;
typedef struct node *NODEPTR;
struct node { STRING name; PFI fn; NODEPTR next, *table; unsigned flags:3, kind:5; };
static int plus(), minus(), times_();
static struct node ops [] = {
	{ "plus", plus, &ops[1], 0, 1, 2 }, { "minus", minus, &ops[2], 0, 3 }, { "times", times_, (NODEPTR) 0 },
};
double dsum = 0.; float ftab[] = { 1.5, 2.5e0, .5, 3.f, };
char text [] = "tab\there\\ \101\x42\
 continued", c = 'a', multi = '\'';
long big = 0x7fffffffL, oct = 0777; unsigned uu = 10U;
short s1, *sp = &s1, sa[2][3] = { { 1, 2, 3 }, { 4 } };
int NAME(one) = 1, NAME(two) = 2;
static plus (a, b) { return a + b; }
static minus (a, b) register a, b; { return a - b; }
static times_ (a, b) int a; int b; { return (a * b); }
static void none () { }
void (*handlers [2])() = { none };
STRING find (n, t) STRING n; NODEPTR t;
begin
	UNTIL (t == NULL) begin
		if (!strcmp (t -> name, n)) then return t -> name;
		t = t -> next;
	end
	return (STRING) NULL;
end
int shared_x;
global_int remote (p) { return toglobal (p, &shared_x); }
BOOL is_even (n) unsigned n; { extern BOOL is_odd (); return n == 0 ? 1 : is_odd (n - 1); }
BOOL is_odd (n) unsigned n; { return n == 0 ? 0 : is_even (n - 1); }
struct big_ { char b[100]; int k; } big_value (k) { struct big_ v; v.k = k; v.b[99] = 'z'; return v; }
void vfn (), *vp;
int (*choose (w)) () int w; { return w ? plus : minus; }
char **copy_args (argv, n) char *argv[]; { char **a = (char **) malloc ((n + 1) * sizeof (char *)); int i; for (i = 0; i < n; i++) a[i] = argv[i]; a[n] = 0; return a; }
void
splitc_main (argc, argv)
	int	argc;
	char	**argv;
{
	register struct node *np; auto int i, j = 0, good = 0; BOOL b;
	struct timeval tv; struct timezone tz; char buf [BUFSIZ], **args, *p; struct { int x, y; } pt, *ppt = &pt; union { int i; char c[4]; } u;
	enum { red, green = 5, blue } colour = blue;
	for (i = 0, np = ops; np; np = np -> next, i++) j = j * 10 + (*np -> fn) (i + 2, 2);
	if (j == 4 * 100 + 1 * 10 + 8) good++;
	shared_x = MYPROC * 3;
	barrier ();
	if (*remote (PROCS - 1) == (PROCS - 1) * 3) good++; else printf ("bad\n");
	if (is_even (10) && !is_odd (4)) ++good;
	if (big_value (7).k == 7 && choose (1) (2, 3) == 5 && (*choose (0)) (5, 3) == 2) good += 1;
	args = copy_args (argv, argc);
	if (args [argc] == NULL && args [0] == argv [0]) good++;
	free (args);
	ppt -> x = 1, (*ppt).y = 2; u.i = 0x01020304;
	if (pt.x + pt.y == 3 && (u.c [0] == 4 || u.c [0] == 1)) good++;
	p = buf;
	for (i = 0; text [i] != '\0'; i++) switch (text [i]) {
		case '\t': case ' ': continue;
		default: if (isalpha (text [i])) { *p++ = islower (text [i]) ? toupper (text [i]) : text [i]; break; }
	}
	*p = 0;
	if (!strcmp (buf, "TABHEREABCONTINUED")) good++; else printf ("%s\n", buf);
	if (colour == 6 && sa [1][0] == 4 && sizeof ftab / sizeof (float) == 4 && oct == 511 && c + 1 == 'b') good++;
	gettimeofday (&tv, &tz);
	forever { if (++j > 1000) break; }
	do { if (j & 1) { j--; continue; } j -= 2; } while (j > 0);
	if (j <= 0 && !strcmp (QUOTE (a + "b"), "a + \"b\"")) good++;
	if (find ("times", ops) && !find ("divide", ops) && var_one + var_two == 3) good++;
	good = all_reduce_to_one_min (good);
	on_one PRINT3 ("%s%s %d\n", "o", "k", good);
	barrier ();
}
