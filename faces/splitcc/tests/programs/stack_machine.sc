/* A stack machine with a large switch, computed dispatch and unions; programs are sent to other processors.
 * procs: 1 2 3 4
 * output: fib 10 = 55
 * output: gcd 84 36 = 12
 * output: 0.5 * 3 = 1.50
 * output: sum over processors ok
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <split-c/split-c.h>
#include <split-c/control.h>

#define MAXCODE 64
#define STACK 32

typedef enum { HALT, PUSH, PUSHD, ADD, SUB, MUL, DIV, MOD, LT, EQ, JMP, JZ, DUP, SWAP, OVER, ROT, DROP, CALL, RET, LOAD, STORE, MULD, PROC, REMOTE } opcode;

typedef union { long i; double d; char *s; void (*f)(); } value_t;
typedef struct { unsigned op : 6; unsigned flag : 1; int : 0; short arg; } insn_t;
typedef struct program { char name[12]; int n; insn_t code[MAXCODE]; double consts[4]; } program_t;

program_t mailbox[4];
volatile int arrived;
long cell;

#define OP(o) case o: {
#define NEXT } break
#define POP() (*--sp)
#define PEEK(n) (sp[-1 - (n)])
#define ARITH(o, e) OP(o) register long b = POP().i, a = POP().i; (sp++)->i = (e); NEXT

static value_t run(p) register program_t *p;
{
    value_t stack[STACK], *sp = stack, t;
    int returns[STACK], rp = 0;
    register insn_t *pc = p->code;

    for (;;) {
        insn_t in;
        in = *pc++;
        switch ((opcode)in.op) {
        OP(HALT) return PEEK(0); NEXT;
        OP(PUSH) sp++->i = in.arg; NEXT;
        OP(PUSHD) sp++->d = p->consts[in.arg]; NEXT;
        ARITH(ADD, a + b);
        ARITH(SUB, a - b);
        ARITH(MUL, a * b);
        ARITH(DIV, b ? a / b : 0);
        ARITH(MOD, b ? a % b : 0);
        ARITH(LT, a < b);
        ARITH(EQ, a == b);
        OP(JMP) pc = p->code + in.arg; NEXT;
        OP(JZ) if (!POP().i) pc = &p->code[in.arg]; NEXT;
        OP(DUP) sp[0] = sp[-1]; sp++; NEXT;
        OP(SWAP) t = PEEK(0), PEEK(0) = PEEK(1), PEEK(1) = t; NEXT;
        OP(OVER) sp[0] = sp[-2]; sp++; NEXT;
        OP(ROT) t = PEEK(2); PEEK(2) = PEEK(1); PEEK(1) = PEEK(0); PEEK(0) = t; NEXT;
        OP(DROP) (void)POP(); NEXT;
        OP(CALL) returns[rp++] = pc - p->code; pc = p->code + in.arg; NEXT;
        OP(RET) pc = p->code + returns[--rp]; NEXT;
        OP(LOAD) sp++->i = cell; NEXT;
        OP(STORE) cell = POP().i; NEXT;
        OP(MULD) sp[-2].d = sp[-2].d * sp[-1].d; --sp; NEXT;
        OP(PROC) sp++->i = MYPROC; NEXT;
        OP(REMOTE) { int p_ = POP().i; (sp++)->i = *toglobal(p_, &cell); } NEXT;
        default:
            fprintf(stderr, "bad opcode %d at %ld\n", in.op, (long)(pc - p->code - 1));
            abort();
        }
        if (sp < stack || sp > stack + STACK) { puts("stack"); exit(3); }
    }
}

static struct { char *name; opcode op; } names[] = {
    {"halt", HALT}, {"push", PUSH}, {"pushd", PUSHD}, {"add", ADD}, {"sub", SUB}, {"mul", MUL}, {"div", DIV},
    {"mod", MOD}, {"lt", LT}, {"eq", EQ}, {"jmp", JMP}, {"jz", JZ}, {"dup", DUP}, {"swap", SWAP}, {"over", OVER},
    {"rot", ROT}, {"drop", DROP}, {"call", CALL}, {"ret", RET}, {"load", LOAD}, {"store", STORE}, {"muld", MULD},
    {"proc", PROC}, {"remote", REMOTE}, {0}
};

assemble(p, text) program_t *p; char *text;
{
    char word[20], *w; int i, c;
    p->n = 0;
    while (*text) {
        while (*text == ' ') text++;
        for (w = word; (c = *text) && c != ' '; *w++ = c, text++) ;
        *w = '\0';
        if (!*word) break;
        if (*word == '-' || *word >= '0' && *word <= '9') { p->code[p->n - 1].arg = atoi(word); continue; }
        for (i = 0; names[i].name && strcmp(names[i].name, word); i++) ;
        if (!names[i].name) { printf("what is %s?\n", word); exit(1); }
        p->code[p->n].op = names[i].op, p->code[p->n].flag = 0, p->code[p->n++].arg = 0;
    }
}

static note(flag) int *flag; { ++*flag; }

static void ship(p, to) program_t *p; int to;
{
    static int k;
    bulk_write(toglobal(to, &mailbox[k++]), p, sizeof *p);
    atomic(note, toglobal(to, (int *)&arrived));
}

splitc_main()
{
    program_t p; value_t v; int i; long s;

    on_one {
        memset(&p, 0, sizeof p);
        strcpy(p.name, "fib");
        assemble(&p, "push 0 push 1 push 10 dup jz 17 push -1 add rot rot swap over add rot jmp 3 halt halt halt drop drop halt");
        ship(&p, PROCS - 1);
        strcpy(p.name, "gcd");
        assemble(&p, "push 84 push 36 dup jz 8 swap over mod jmp 2 drop halt");
        ship(&p, PROCS - 1);
        strcpy(p.name, "half"), p.consts[0] = .5, p.consts[1] = 3.;
        assemble(&p, "pushd 0 pushd 1 muld halt");
        ship(&p, PROCS - 1);
    }
    cell = MYPROC * MYPROC;
    barrier();
    on_proc(PROCS - 1) {
        while (arrived < 3) ;
        v = run(&mailbox[0]); printf("fib 10 = %ld\n", v.i);
        v = run(&mailbox[1]); printf("gcd 84 36 = %ld\n", v.i);
        v = run(mailbox + 2); printf("0.5 * 3 = %.2f\n", v.d);
    }
    for (i = 0, s = 0; i < PROCS; i++) {
        char text[40];
        sprintf(text, "push %d remote halt", i);
        assemble(&p, text);
        s += run(&p).i;
    }
    s -= (long)(PROCS - 1) * PROCS * (2 * PROCS - 1) / 6;
    s = all_reduce_to_one_add_l(s);
    on_one printf("sum over processors %s\n", s ? "wrong" : "ok");
    barrier();
}
