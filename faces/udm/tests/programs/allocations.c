/* The calls of messages, sections and operations on valid copies allocate nothing. One node. */
#include "crl.h"
#include "job.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);

/* Of the program's thread: the library's own may allocate. */
static __thread unsigned long allocations;
static unsigned long taken;

void *malloc(size_t size) {
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    allocations++;
    return __libc_realloc(block, size);
}

static void on_message(udm_t *u, void *argument) {
    udm_message message;
    unsigned bits;
    (void)argument;
    GOOD(udm_peek(u, &message));
    GOOD(udm_extract(u, &message));
    if (udm_word(&message, 0) == 1) GOOD(udm_inject1(u, message.source, 0, 2));
    GOOD(udm_uac(u, &bits));
    taken++;
}

static void messages(void) {
    udm_message message;
    char bytes[200] = {0};
    size_t ran;
    uint64_t waiting;
    int is_there, mode;
    GOOD(udm_inject1(udm, 0, 0, 1));
    GOOD(udm_injectc4(udm, 0, 0, 0, 2, 3, 4));
    GOOD(udm_inject_bytes(udm, 0, 0, bytes, sizeof bytes));
    do GOOD(udm_poll(udm, 10, &ran));
    while (ran > 0);
    GOOD(udm_beginatom(udm, UDM_INTERRUPT_DISABLE));
    GOOD(udm_inject0(udm, 0, 0));
    GOOD(udm_available(udm, &is_there));
    EQUAL(is_there, 1);
    GOOD(udm_peek(udm, &message));
    GOOD(udm_extract(udm, &message));
    EQUAL(udm_extract(udm, &message), UDM_BAD_DISPOSE);
    GOOD(udm_endatom(udm, UDM_INTERRUPT_DISABLE));
    GOOD(udm_mode(udm, 0, &mode, &waiting));
}

static void operations(long *region) {
    GOOD(rgn_start_write(region));
    ++*region;
    GOOD(rgn_end_write(region));
    GOOD(rgn_start_read(region));
    GOOD(rgn_end_read(region));
}

int main(void) {
    unsigned round;
    unsigned long before;
    long *region;
    open_node(UDM_SAFEPOINT);
    GOOD(udm_on(udm, 0, on_message, NULL));
    GOOD(crl_init());
    region = (long *)rgn_map(rgn_create(sizeof *region));
    TRUE(region != NULL);
    for (round = 0; round < 100; round++) {
        messages();
        operations(region);
    }
    TRUE(allocations > 0);
    before = allocations;
    for (round = 0; round < 10000; round++) {
        messages();
        operations(region);
    }
    EQUAL(allocations, before);
    EQUAL(taken, 4ul * 10100);
    EQUAL(*region, 10100);
    GOOD(crl_finish(LONG));
    return close_node();
}
