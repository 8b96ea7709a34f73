/* While one thread waits in a call of the lower layer, another uses the same shared manager, and makes what the first waits for. */
#include "checks.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Uses of the manager that are to come to an end while a call waits. */
enum { USES = 2000 };
enum { AREA_BYTES = 1 << 20 };

static hamlyn_manager *shared, *another;
/* Moves packets in its own calls only, which are made by the main thread. */
static hamlyn_manager *owner;
static hamlyn_queue *queue;
static hamlyn_terminus *terminus;
static hamlyn_target *to_owner, *stores;
static hamlyn_initiator *initiator;
static hamlyn_counter *counter;
static hamlyn_ticket all, whole, counted, to_itself;
static hamlyn_target *itself;
static uint64_t link_to_owner, link_found;
static char *long_data;

static uint32_t strategy;
static atomic_int waits, is_over;

/* Does what waits, in a thread of its own. */
static void *in_a_thread(void *act) {
    void (*wait_for_it)(void) = *(void (**)(void))act;
    atomic_store(&waits, 1);
    wait_for_it();
    atomic_store(&is_over, 1);
    return NULL;
}

static void others_use_it(void) {
    while (!atomic_load(&waits)) {
    }
    for (int i = 0; i < USES; i++) {
        OK(hamlyn_poll(another, &error));
        /* The one that waits comes to it. */
        sched_yield();
    }
}

/* `wait_for_it` waits until `make_it` was called, again and again. */
static void while_one_waits(const char *what, void (*wait_for_it)(void), void (*make_it)(void)) {
    who = what;
    pthread_t thread;
    atomic_store(&waits, 0);
    atomic_store(&is_over, 0);
    IS(pthread_create(&thread, NULL, in_a_thread, &wait_for_it) == 0);
    others_use_it();
    while (!atomic_load(&is_over)) {
        make_it();
    }
    IS(pthread_join(thread, NULL) == 0);
}

/* Of the thread that waits, as `error` is the main thread's. */
static hamlyn_error own;
#define WELL(call) check((call) == HAMLYN_OK, own.text, __LINE__)

static void polls_owner(void) {
    OK(hamlyn_poll(owner, &error));
}


/* ---- What waits ---- */

static void receives(void) {
    hamlyn_notification came;
    WELL(hamlyn_rcv(queue, HAMLYN_FOREVER, &came, &own));
    IS(came.word == 47);
}

static void sends_to_itself(void) {
    static int is_sent;
    hamlyn_outgoing_message message;
    memset(&message, 0, sizeof message);
    message.word = 47;
    if (!is_sent++) {
        OK(hamlyn_send_msg(itself, &message, HAMLYN_FOREVER, NULL, &error));
    }
    OK(hamlyn_poll(another, &error));
}

static uint32_t begun(void) {
    uint32_t operation;
    WELL(hamlyn_begin_put(initiator, 0, "x", 1, HAMLYN_FOREVER, &operation, &own));
    return operation;
}

static void finishes(void) {
    WELL(hamlyn_finish(initiator, begun(), HAMLYN_FOREVER, &own));
}

static void finishes_a_word(void) {
    uint32_t operation;
    uint64_t value;
    WELL(hamlyn_begin_read_word(initiator, 8, HAMLYN_FOREVER, &operation, &own));
    WELL(hamlyn_finish_word(initiator, operation, HAMLYN_FOREVER, &value, &own));
}

static void finishes_all(void) {
    begun();
    begun();
    WELL(hamlyn_finish_all(initiator, HAMLYN_FOREVER, &own));
}

static void awaits_completions(void) {
    WELL(hamlyn_count_completion(initiator, begun(), counter, &own));
    WELL(hamlyn_await_completions(shared, counter, 1, HAMLYN_FOREVER, &own));
}

static void begins(void) {
    uint32_t operation;
    WELL(hamlyn_begin_put(initiator, 0, long_data, AREA_BYTES, HAMLYN_FOREVER, &operation, &own));
    WELL(hamlyn_finish(initiator, operation, HAMLYN_FOREVER, &own));
}

static void begins_pieces(void) {
    uint32_t operation;
    hamlyn_strided pieces = {0, 2048, 1024, 512};
    uint64_t offsets[300];
    for (int i = 0; i < 300; i++) {
        offsets[i] = 64u * (unsigned)i;
    }
    WELL(hamlyn_begin_put_strided(initiator, &pieces, long_data, 512 * 1024, HAMLYN_FOREVER, &operation, &own));
    WELL(hamlyn_finish(initiator, operation, HAMLYN_FOREVER, &own));
    WELL(hamlyn_begin_read_strided(initiator, &pieces, 0, HAMLYN_FOREVER, &operation, &own));
    WELL(hamlyn_finish(initiator, operation, HAMLYN_FOREVER, &own));
    WELL(hamlyn_begin_put_indexed(initiator, offsets, 300, 8, long_data, 2400, HAMLYN_FOREVER, &operation, &own));
    WELL(hamlyn_finish(initiator, operation, HAMLYN_FOREVER, &own));
    WELL(hamlyn_begin_read_indexed(initiator, offsets, 300, 8, 0, HAMLYN_FOREVER, &operation, &own));
    WELL(hamlyn_finish(initiator, operation, HAMLYN_FOREVER, &own));
}

static void puts_and_reads(void) {
    uint64_t value;
    static char into[200000];
    WELL(hamlyn_put(initiator, 0, "12345678", 8, HAMLYN_FOREVER, &own));
    WELL(hamlyn_read(initiator, 0, into, sizeof into, HAMLYN_FOREVER, &own));
    IS(memcmp(into, "12345678", 8) == 0);
    WELL(hamlyn_read_word(initiator, 0, HAMLYN_FOREVER, &value, &own));
    hamlyn_atomic_change add = {HAMLYN_CHANGE_ADD, 64, 1, 0}, add_short = {HAMLYN_CHANGE_ADD, 32, 1, 0};
    uint64_t before;
    WELL(hamlyn_change(initiator, 0, &add, HAMLYN_FOREVER, &before, &own));
    IS(before == value);
    WELL(hamlyn_change(initiator, 0, &add_short, HAMLYN_FOREVER, &before, &own));
}

static void sends(void) {
    hamlyn_outgoing_message message;
    memset(&message, 0, sizeof message);
    message.data = long_data;
    message.length_bytes = AREA_BYTES;
    for (int i = 0; i < 64; i++) {
        WELL(hamlyn_send_msg(to_owner, &message, HAMLYN_FOREVER, NULL, &own));
    }
}

static void sends_many(void) {
    hamlyn_outgoing_message messages[8];
    size_t sent;
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < 8; i++) {
        messages[i].data = long_data;
        messages[i].length_bytes = i % 2 == 0 ? AREA_BYTES : 4;
    }
    WELL(hamlyn_send_many(to_owner, messages, 8, HAMLYN_FOREVER, &sent, NULL, &own));
    IS(sent == 8);
}

static void stores_much(void) {
    for (int i = 0; i < 16; i++) {
        WELL(hamlyn_store(stores, 0, long_data, AREA_BYTES, HAMLYN_FOREVER, &own));
    }
}

static void fences(void) {
    hamlyn_outgoing_message message;
    memset(&message, 0, sizeof message);
    WELL(hamlyn_send_msg(to_owner, &message, HAMLYN_FOREVER, NULL, &own));
    WELL(hamlyn_fence_link(shared, link_to_owner, HAMLYN_FOREVER, &own));
}

static void connects(void) {
    WELL(hamlyn_connect(shared, "late", HAMLYN_FOREVER, &link_found, &own));
}

static hamlyn_manager *late;

static void opens_late(void) {
    if (late == NULL) {
        OK(hamlyn_open("late", &late, &error));
    }
}

/* ---- A process that is stopped, and answers nothing before it goes on ---- */

static pid_t stopped;
static hamlyn_ticket of_stopped;
static hamlyn_region_ticket a_region;
static uint64_t pool_number, link_to_stopped;

/* What the other process is asked for by offers. */
static void serves(void) {
    hamlyn_manager *manager;
    hamlyn_area *area;
    hamlyn_slot *slot;
    hamlyn_slot_options options;
    hamlyn_region *region;
    hamlyn_pool *pool;
    hamlyn_peer peer;
    size_t peers = 0;
    memset(&options, 0, sizeof options);
    options.rights = HAMLYN_RIGHT_WRITE | HAMLYN_RIGHT_READ | HAMLYN_RIGHT_ATOMIC;
    OK(hamlyn_open("stopped", &manager, &error));
    OK(hamlyn_allocate_area(manager, 4096, HAMLYN_AREA_SPARSE, &area, &error));
    OK(hamlyn_open_slot(manager, area, &options, &slot, &error));
    OK(hamlyn_fast_ticket(slot, 0, 4096, &of_stopped, &error));
    OK(hamlyn_share_region(slot, 0, 4096, HAMLYN_REGION_WRITABLE, HAMLYN_ALL_LINKED, &region, &a_region, &error));
    OK(hamlyn_offer(manager, "region", HAMLYN_OFFER_ALWAYS, &a_region, sizeof a_region, &error));
    OK(hamlyn_open_pool(64, 1, &pool, &error));
    /* Whoever asks for this has the rest, and connects next. */
    OK(hamlyn_offer(manager, "ticket", HAMLYN_OFFER_ALWAYS, &of_stopped, sizeof of_stopped, &error));
    while (peers == 0) {
        OK(hamlyn_wait(manager, HAMLYN_FOREVER, &error));
        OK(hamlyn_peers(manager, &peer, 1, &peers, &error));
    }
    OK(hamlyn_show_pool(manager, pool, peer.link, &pool_number, &error));
    OK(hamlyn_offer(manager, "pool", HAMLYN_OFFER_ALWAYS, &pool_number, sizeof pool_number, &error));
    for (;;) {
        OK(hamlyn_wait(manager, HAMLYN_FOREVER, &error));
    }
}

static void asks(const char *item, void *into, size_t length) {
    char answer[HAMLYN_OFFER_BYTES_MAX];
    size_t came;
    OK(hamlyn_ask(another, "stopped", item, HAMLYN_FOREVER, answer, sizeof answer, &came, &error));
    IS(came == length);
    memcpy(into, answer, length);
}

static void stops(void) {
    int status;
    IS(kill(stopped, SIGSTOP) == 0);
    IS(waitpid(stopped, &status, WUNTRACED) == stopped && WIFSTOPPED(status));
}

static void goes_on(void) {
    IS(kill(stopped, SIGCONT) == 0);
}

static hamlyn_target *to_stopped;

static void opens_a_target(void) {
    WELL(hamlyn_open_target(terminus, &of_stopped, HAMLYN_FOREVER, &to_stopped, &own));
}

static hamlyn_attached *attached;
static hamlyn_shared_pool *shared_pool;

static void attaches(void) {
    WELL(hamlyn_attach_region(shared, &a_region, HAMLYN_FOREVER, &attached, &own));
}

static void fetches(void) {
    WELL(hamlyn_fetch_pool(shared, link_to_stopped, pool_number, HAMLYN_FOREVER, &shared_pool, &own));
}

/* While the other process stands still. */
static void while_it_is_stopped(const char *what, void (*wait_for_it)(void)) {
    stops();
    while_one_waits(what, wait_for_it, goes_on);
}

static void with_a_process_that_is_stopped(void) {
    hamlyn_initiator *fresh;
    asks("region", &a_region, sizeof a_region);
    asks("ticket", &of_stopped, sizeof of_stopped);
    while_it_is_stopped("hamlyn_open_target", opens_a_target);
    OK(hamlyn_target_link(to_stopped, &link_to_stopped, &error));
    asks("pool", &pool_number, sizeof pool_number);
    while_it_is_stopped("hamlyn_attach_region", attaches);
    while_it_is_stopped("hamlyn_fetch_pool", fetches);
    OK(hamlyn_check_attached(attached, &error));
    OK(hamlyn_open_initiator(another, &of_stopped, 0, MINUTE, &fresh, &error));
    OK(hamlyn_close_initiator(fresh, &error));
    OK(hamlyn_close_shared_pool(shared_pool, &error));
    OK(hamlyn_close_attached(attached, &error));
    OK(hamlyn_close_target(to_stopped, &error));
    IS(kill(stopped, SIGKILL) == 0);
    IS(waitpid(stopped, NULL, 0) == stopped);
}

/* ---- */

static void opens_the_owner(void) {
    static hamlyn_area *area;
    static hamlyn_slot *slot, *counts;
    hamlyn_slot_options options;
    memset(&options, 0, sizeof options);
    options.entries = 1;
    options.rights = HAMLYN_RIGHT_WRITE | HAMLYN_RIGHT_READ | HAMLYN_RIGHT_ATOMIC;
    OK(hamlyn_open("owner", &owner, &error));
    OK(hamlyn_allocate_area(owner, AREA_BYTES, HAMLYN_AREA_PRIVATE, &area, &error));
    OK(hamlyn_open_slot(owner, area, &options, &slot, &error));
    OK(hamlyn_fast_ticket(slot, 0, AREA_BYTES, &all, &error));
    OK(hamlyn_entry_ticket(slot, 0, 0, AREA_BYTES, &whole, &error));
    memset(&options, 0, sizeof options);
    options.entries = 1;
    options.counts_stores = 1;
    OK(hamlyn_open_slot(owner, area, &options, &counts, &error));
    OK(hamlyn_entry_ticket(counts, 0, 0, AREA_BYTES, &counted, &error));
}

static void opens_the_shared_one(void) {
    hamlyn_options options;
    static hamlyn_area *area;
    static hamlyn_slot *slot;
    hamlyn_slot_options of_slot;
    OK(hamlyn_default_options(&options, &error));
    options.name = "shared";
    options.shared = 1;
    options.strategy = strategy;
    OK(hamlyn_open_with(&options, &shared, &error));
    OK(hamlyn_share_manager(shared, &another, &error));
    OK(hamlyn_open_queue(shared, 64, &queue, &error));
    OK(hamlyn_allocate_area(shared, 64, HAMLYN_AREA_PRIVATE, &area, &error));
    memset(&of_slot, 0, sizeof of_slot);
    of_slot.queue = queue;
    OK(hamlyn_open_slot(shared, area, &of_slot, &slot, &error));
    OK(hamlyn_fast_ticket(slot, 0, 64, &to_itself, &error));
    OK(hamlyn_open_terminus(shared, 0, 0, 0, &terminus, &error));
    OK(hamlyn_open_target(terminus, &to_itself, MINUTE, &itself, &error));
    OK(hamlyn_open_target(terminus, &whole, MINUTE, &to_owner, &error));
    OK(hamlyn_open_target(terminus, &counted, MINUTE, &stores, &error));
    OK(hamlyn_target_link(to_owner, &link_to_owner, &error));
    OK(hamlyn_open_initiator(shared, &all, AREA_BYTES, MINUTE, &initiator, &error));
    OK(hamlyn_open_counter(&counter, &error));
}

/* A call that keeps the others out waits for ever. */
static void keeps_others_out(int signal_number) {
    (void)signal_number;
    check(0, "other threads use the manager meanwhile", __LINE__);
}

int main(int count, char **arguments) {
    long_data = calloc(1, AREA_BYTES);
    stopped = fork();
    if (stopped == 0) {
        IS(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        serves();
    }
    if (count > 1) {
        strategy = (uint32_t)atoi(arguments[1]);
    }
    signal(SIGALRM, keeps_others_out);
    alarm(300);
    opens_the_owner();
    opens_the_shared_one();
    while_one_waits("hamlyn_rcv", receives, sends_to_itself);
    while_one_waits("hamlyn_connect", connects, opens_late);
    while_one_waits("hamlyn_fence_link", fences, polls_owner);
    while_one_waits("hamlyn_finish", finishes, polls_owner);
    while_one_waits("hamlyn_finish_word", finishes_a_word, polls_owner);
    while_one_waits("hamlyn_finish_all", finishes_all, polls_owner);
    while_one_waits("hamlyn_await_completions", awaits_completions, polls_owner);
    while_one_waits("hamlyn_begin_put", begins, polls_owner);
    while_one_waits("operations on pieces", begins_pieces, polls_owner);
    while_one_waits("hamlyn_read and its like", puts_and_reads, polls_owner);
    while_one_waits("hamlyn_send_msg", sends, polls_owner);
    while_one_waits("hamlyn_send_many", sends_many, polls_owner);
    while_one_waits("hamlyn_store", stores_much, polls_owner);
    with_a_process_that_is_stopped();
    puts("passed");
    return 0;
}
