/* What bad input of the lower layer gets: an error that says what it is, and nothing else. */
#include "checks.h"

#include <pthread.h>

/* All handles of the lower layer. */
struct handles {
    hamlyn_manager *manager;
    hamlyn_area *area;
    hamlyn_queue *queue;
    hamlyn_slot *slot;
    hamlyn_terminus *terminus;
    hamlyn_target *target;
    hamlyn_initiator *initiator;
    hamlyn_counter *counter;
    hamlyn_region *region;
    hamlyn_attached *attached;
    hamlyn_window *window;
    hamlyn_handover *handover;
    hamlyn_pool *pool;
    hamlyn_shared_pool *shared_pool;
};

static hamlyn_ticket ticket;
static hamlyn_outgoing_message message;
static hamlyn_region_ticket a_region;
static hamlyn_atomic_change change = {HAMLYN_CHANGE_ADD, 64, 1, 0};

/* Each function with each of its handles. `any_thread`: those that every thread may use are called, too. */
static void every_handle_gets(const struct handles *of, hamlyn_status expected, const char *said, int any_thread) {
    char bytes[HAMLYN_OFFER_BYTES_MAX];
    uint64_t word, another;
    uint32_t number;
    uint16_t tag;
    size_t count;
    hamlyn_peer peer;
    hamlyn_notification notification;
    hamlyn_piece piece = {0, 1, 0};
    hamlyn_strided strided = {0, 1, 1, 1};
    hamlyn_completion completion;
    hamlyn_link_state state;
    hamlyn_log_use log_use;
    hamlyn_undelivered undelivered;
    hamlyn_slot_info slot_info;
    hamlyn_entry entry;
    hamlyn_region_ticket region_ticket;
    hamlyn_window_info window_info;
    hamlyn_handover_info handover_info;
    hamlyn_pool_info pool_info;
    hamlyn_chunk chunk;
    const void *at;
    struct handles made;

    GETS(expected, said, hamlyn_allocate_handover(of->manager, 1, 64, &made.area, &made.handover, &error));
    GETS(expected, said, hamlyn_allocate_area_at(of->manager, 64, &made, &made.area, &error));
    GETS(expected, said, hamlyn_hide_pool(of->manager, 1, &error));
    GETS(expected, said, hamlyn_fetch_pool(of->manager, 0, 0, 0, &made.shared_pool, &error));
    GETS(expected, said, hamlyn_allocate_area(of->manager, 64, HAMLYN_AREA_PRIVATE, &made.area, &error));
    GETS(expected, said, hamlyn_open_queue(of->manager, 4, &made.queue, &error));
    GETS(expected, said, hamlyn_open_terminus(of->manager, 0, 0, 0, &made.terminus, &error));
    GETS(expected, said, hamlyn_open_initiator(of->manager, &ticket, 0, 0, &made.initiator, &error));
    GETS(expected, said, hamlyn_refusals(of->manager, 0, &word, &error));
    GETS(expected, said, hamlyn_new_key(of->manager, &word, &error));
    GETS(expected, said, hamlyn_connect(of->manager, "nobody", 0, &word, &error));
    GETS(expected, said, hamlyn_disconnect(of->manager, 0, &error));
    GETS(expected, said, hamlyn_link_peer(of->manager, 0, &peer, &error));
    GETS(expected, said, hamlyn_link_peer_name(of->manager, 0, bytes, sizeof bytes, &error));
    GETS(expected, said, hamlyn_check_link(of->manager, 0, &error));
    GETS(expected, said, hamlyn_peers(of->manager, &peer, 1, &count, &error));
    GETS(expected, said, hamlyn_identity(of->manager, &peer, &error));
    GETS(expected, said, hamlyn_get_link_state(of->manager, 0, &state, NULL, 0, &error));
    GETS(expected, said, hamlyn_get_log_use(of->manager, 0, &log_use, &error));
    GETS(expected, said, hamlyn_fence_link(of->manager, 0, 0, &error));
    GETS(expected, said, hamlyn_next_undelivered(of->manager, &undelivered, NULL, 0, &error));
    GETS(expected, said, hamlyn_undelivered_forgotten(of->manager, &word, &error));
    GETS(expected, said, hamlyn_set_bad_keys_max(of->manager, 9, &error));
    GETS(expected, said, hamlyn_offer(of->manager, "item", HAMLYN_OFFER_ALWAYS, "x", 1, &error));
    GETS(expected, said, hamlyn_withdraw(of->manager, "item", &error));
    GETS(expected, said, hamlyn_ask(of->manager, "nobody", "item", 0, bytes, sizeof bytes, &count, &error));
    GETS(expected, said, hamlyn_attach_region(of->manager, &a_region, 0, &made.attached, &error));
    GETS(expected, said, hamlyn_regions(of->manager, &count, &count, &error));

    GETS(expected, said, hamlyn_area_bytes(of->area, &word, &error));
    GETS(expected, said, hamlyn_copy_from_area(of->area, 0, bytes, 1, &error));
    GETS(expected, said, hamlyn_copy_to_area(of->area, 0, bytes, 1, &error));
    GETS(expected, said, hamlyn_fill_area(of->area, 0, 1, 1, &error));
    GETS(expected, said, hamlyn_load_from_area(of->area, 0, &word, &error));
    GETS(expected, said, hamlyn_store_to_area(of->area, 0, 1, &error));
    GETS(expected, said, hamlyn_change_area(of->area, 0, &change, NULL, &error));
    GETS(expected, said, hamlyn_open_area_window(of->area, 0, 1, &made.window, &error));

    GETS(expected, said, hamlyn_get_handover_info(of->handover, &handover_info, &error));
    GETS(expected, said, hamlyn_open_pieces(of->handover, 0, 1, &error));
    GETS(expected, said, hamlyn_is_piece_held(of->handover, 0, &number, &error));
    GETS(expected, said, hamlyn_view_pieces(of->handover, 0, 1, &at, &error));
    GETS(expected, said, hamlyn_end_view(of->handover, 0, 1, &error));

    GETS(expected, said, hamlyn_rcv(of->queue, 0, &notification, &error));
    GETS(expected, said, hamlyn_rcv_many(of->queue, &notification, 1, &count, &error));
    GETS(expected, said, hamlyn_queue_lost(of->queue, &word, &error));
    GETS(expected, said, hamlyn_queue_entries(of->queue, &count, &error));

    GETS(expected, said, hamlyn_open_slot(of->manager, of->area, NULL, &made.slot, &error));
    GETS(expected, said, hamlyn_slot_number(of->slot, &number, &error));
    GETS(expected, said, hamlyn_fast_ticket(of->slot, 0, 1, &ticket, &error));
    GETS(expected, said, hamlyn_entry_ticket(of->slot, 0, 0, 1, &ticket, &error));
    GETS(expected, said, hamlyn_rekey_slot(of->slot, &error));
    GETS(expected, said, hamlyn_revoke_slot(of->slot, &error));
    GETS(expected, said, hamlyn_get_slot_info(of->slot, &slot_info, &error));
    GETS(expected, said, hamlyn_slot_refusals(of->slot, 0, &word, &error));
    GETS(expected, said, hamlyn_permit_entry(of->slot, 0, 1, 0, 1, &error));
    GETS(expected, said, hamlyn_arm_entry(of->slot, 0, &error));
    GETS(expected, said, hamlyn_disarm_entry(of->slot, 0, &error));
    GETS(expected, said, hamlyn_reset_entry(of->slot, 0, &error));
    GETS(expected, said, hamlyn_set_entry_class(of->slot, 0, 1, &error));
    GETS(expected, said, hamlyn_get_entry(of->slot, 0, &entry, &error));
    GETS(expected, said, hamlyn_stored_bytes(of->slot, 0, &word, &error));
    GETS(expected, said, hamlyn_share_region(of->slot, 0, 4096, HAMLYN_REGION_WRITABLE, 0, &made.region, &region_ticket, &error));

    GETS(expected, said, hamlyn_bind_area(of->terminus, of->area, 0, 1, &tag, &error));
    GETS(expected, said, hamlyn_gather_metadata(of->terminus, &piece, bytes, 1, &error));
    GETS(expected, said, hamlyn_unbind_area(of->terminus, 0, &error));
    GETS(expected, said, hamlyn_open_target(of->terminus, &ticket, 0, &made.target, &error));
    GETS(expected, said, hamlyn_retarget(of->target, &ticket, &error));
    GETS(expected, said, hamlyn_target_link(of->target, &word, &error));
    GETS(expected, said, hamlyn_send_msg(of->target, &message, 0, NULL, &error));
    GETS(expected, said, hamlyn_send_many(of->target, &message, 1, 0, &count, NULL, &error));
    GETS(expected, said, hamlyn_send_gather(of->target, &message, &piece, 1, NULL, &error));
    GETS(expected, said, hamlyn_get_completion(of->target, 1, &completion, &error));
    GETS(expected, said, hamlyn_store(of->target, 0, "x", 1, 0, &error));

    GETS(expected, said, hamlyn_begin_read(of->initiator, 0, 0, 1, 0, &number, &error));
    GETS(expected, said, hamlyn_begin_put(of->initiator, 0, "x", 1, 0, &number, &error));
    GETS(expected, said, hamlyn_begin_atomic(of->initiator, 0, &change, 0, &number, &error));
    GETS(expected, said, hamlyn_begin_read_word(of->initiator, 0, 0, &number, &error));
    GETS(expected, said, hamlyn_begin_read_strided(of->initiator, &strided, 0, 0, &number, &error));
    GETS(expected, said, hamlyn_begin_put_strided(of->initiator, &strided, "x", 1, 0, &number, &error));
    GETS(expected, said, hamlyn_begin_read_indexed(of->initiator, &word, 0, 1, 0, 0, &number, &error));
    GETS(expected, said, hamlyn_begin_put_indexed(of->initiator, &word, 0, 1, "", 0, 0, &number, &error));
    GETS(expected, said, hamlyn_finish(of->initiator, 0, 0, &error));
    GETS(expected, said, hamlyn_finish_word(of->initiator, 0, 0, &word, &error));
    GETS(expected, said, hamlyn_finish_all(of->initiator, 0, &error));
    GETS(expected, said, hamlyn_outstanding(of->initiator, &count, &error));
    GETS(expected, said, hamlyn_landed(of->initiator, 0, bytes, 1, &error));
    GETS(expected, said, hamlyn_read(of->initiator, 0, bytes, 1, 0, &error));
    GETS(expected, said, hamlyn_put(of->initiator, 0, bytes, 1, 0, &error));
    GETS(expected, said, hamlyn_read_word(of->initiator, 0, 0, &word, &error));
    GETS(expected, said, hamlyn_change(of->initiator, 0, &change, 0, &word, &error));
    GETS(expected, said, hamlyn_open_initiator_window(of->initiator, &made.window, &error));

    GETS(expected, said, hamlyn_revoke_region(of->region, &error));
    GETS(expected, said, hamlyn_check_attached(of->attached, &error));
    GETS(expected, said, hamlyn_open_attached_window(of->attached, &made.window, &error));

    if (!any_thread) {
        GETS(expected, said, hamlyn_count_completion(of->initiator, 0, of->counter, &error));
        GETS(expected, said, hamlyn_counts(of->counter, &word, &another, &error));
        GETS(expected, said, hamlyn_await_completions(of->manager, of->counter, 1, 0, &error));
        GETS(expected, said, hamlyn_get_window(of->window, &window_info, &error));
        GETS(expected, said, hamlyn_read_window(of->window, 0, bytes, 1, &error));
        GETS(expected, said, hamlyn_write_window(of->window, 0, bytes, 1, &error));
        GETS(expected, said, hamlyn_change_window(of->window, 0, &change, &word, &error));
        GETS(expected, said, hamlyn_take_chunk(of->pool, 1, &chunk, &error));
        GETS(expected, said, hamlyn_give_back_chunk(of->pool, 0, &error));
        GETS(expected, said, hamlyn_get_pool_info(of->pool, &pool_info, &error));
        GETS(expected, said, hamlyn_show_pool(of->manager, of->pool, 0, &word, &error));
        GETS(expected, said, hamlyn_shared_pool_bytes(of->shared_pool, &word, &error));
        GETS(expected, said, hamlyn_read_shared_pool(of->shared_pool, 0, bytes, 1, &error));
        GETS(expected, said, hamlyn_view_shared_pool(of->shared_pool, 0, 1, &at, &error));
    } else {
        GETS(expected, said, hamlyn_show_pool(of->manager, of->pool, 0, &word, &error));
        OK(hamlyn_get_pool_info(of->pool, &pool_info, &error));
        OK(hamlyn_shared_pool_bytes(of->shared_pool, &word, &error));
        GETS(expected, said, hamlyn_await_completions(of->manager, of->counter, 1, 0, &error));
        OK(hamlyn_counts(of->counter, &word, &another, &error));
        OK(hamlyn_get_window(of->window, &window_info, &error));
    }
}

static void every_close_gets(const struct handles *of, hamlyn_status expected, int any_thread) {
#define CLOSE(kind)                                                                                               \
    memset(&error, 0, sizeof error);                                                                              \
    IS(hamlyn_close_##kind(of->kind, &error) == expected)
    CLOSE(area);
    CLOSE(queue);
    CLOSE(target);
    CLOSE(terminus);
    CLOSE(initiator);
    CLOSE(region);
    CLOSE(attached);
    CLOSE(slot);
    CLOSE(handover);
    if (!any_thread) {
        CLOSE(pool);
        CLOSE(shared_pool);
        CLOSE(counter);
        CLOSE(window);
    }
}

static struct handles open_handles;

static void *in_another_thread(void *unused) {
    (void)unused;
    every_handle_gets(&open_handles, HAMLYN_OTHER_THREAD, "thread", 1);
    every_close_gets(&open_handles, HAMLYN_OTHER_THREAD, 1);
    return NULL;
}

/* Places and data that are null, and lengths that cannot be. */
static void nulls(const struct handles *of) {
    const size_t too_long = (size_t)-1;
    char bytes[64];
    size_t count;
    uint64_t word;
    uint32_t number;
    uint16_t tag;
    hamlyn_region *region;
    hamlyn_notification notification;
    struct handles made;
    GETS(HAMLYN_INVALID, "null", hamlyn_allocate_area(of->manager, 64, HAMLYN_AREA_PRIVATE, NULL, &error));
    GETS(HAMLYN_INVALID, "HAMLYN_AREA_PRIVATE", hamlyn_allocate_area(of->manager, 64, 3, &made.area, &error));
    GETS(HAMLYN_SYSTEM, "", hamlyn_allocate_area(of->manager, UINT64_MAX / 2, HAMLYN_AREA_PRIVATE, &made.area, &error));
    GETS(HAMLYN_INVALID, "bytes", hamlyn_allocate_area(of->manager, UINT64_MAX, HAMLYN_AREA_SPARSE, &made.area, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_area_bytes(of->area, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_copy_from_area(of->area, 0, NULL, 1, &error));
    GETS(HAMLYN_INVALID, "longer", hamlyn_copy_from_area(of->area, 0, bytes, too_long, &error));
    GETS(HAMLYN_INVALID, "", hamlyn_copy_from_area(of->area, UINT64_MAX, bytes, 2, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_copy_to_area(of->area, 0, NULL, 1, &error));
    GETS(HAMLYN_INVALID, "", hamlyn_copy_to_area(of->area, 65536, bytes, 1, &error));
    GETS(HAMLYN_INVALID, "", hamlyn_fill_area(of->area, 1, UINT64_MAX, 0, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_load_from_area(of->area, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "", hamlyn_load_from_area(of->area, 65530, &word, &error));
    GETS(HAMLYN_INVALID, "", hamlyn_store_to_area(of->area, 65530, 1, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_change_area(of->area, 0, NULL, NULL, &error));
    GETS(HAMLYN_INVALID, "", hamlyn_change_area(of->area, 4, &change, NULL, &error));
    hamlyn_atomic_change none = {9, 64, 0, 0};
    GETS(HAMLYN_INVALID, "HAMLYN_CHANGE_ADD", hamlyn_change_area(of->area, 0, &none, NULL, &error));
    none.change = HAMLYN_CHANGE_ADD;
    none.bits = 16;
    GETS(HAMLYN_INVALID, "32 or 64", hamlyn_change_area(of->area, 0, &none, NULL, &error));
    /* A place that cannot be written is noticed before anything is done. */
    uint64_t before, crooked[2];
    OK(hamlyn_load_from_area(of->area, 0, &before, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_change_area(of->area, 0, &change, (void *)((char *)crooked + 1), &error));
    OK(hamlyn_load_from_area(of->area, 0, &word, &error));
    IS(word == before);
    GETS(HAMLYN_INVALID, "null", hamlyn_open_area_window(of->area, 0, 1, NULL, &error));
    GETS(HAMLYN_INVALID, "area", hamlyn_open_area_window(of->area, UINT64_MAX, 2, &made.window, &error));

    GETS(HAMLYN_INVALID, "null", hamlyn_allocate_area_at(of->manager, 64, NULL, &made.area, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_allocate_area_at(of->manager, 64, bytes, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_allocate_handover(of->manager, 1, 64, NULL, &made.handover, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_allocate_handover(of->manager, 1, 64, &made.area, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_get_handover_info(of->handover, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_is_piece_held(of->handover, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_view_pieces(of->handover, 0, 1, NULL, &error));
    GETS(HAMLYN_HELD, "no view", hamlyn_end_view(of->handover, 0, 1, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_open_pool(64, 1, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_take_chunk(of->pool, 1, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_get_pool_info(of->pool, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_show_pool(of->manager, of->pool, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_fetch_pool(of->manager, 0, 0, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_shared_pool_bytes(of->shared_pool, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_read_shared_pool(of->shared_pool, 0, NULL, 1, &error));
    GETS(HAMLYN_INVALID, "longer", hamlyn_read_shared_pool(of->shared_pool, 0, bytes, too_long, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_view_shared_pool(of->shared_pool, 0, 1, NULL, &error));

    GETS(HAMLYN_INVALID, "null", hamlyn_open_queue(of->manager, 4, NULL, &error));
    GETS(HAMLYN_INVALID, "entries", hamlyn_open_queue(of->manager, 1, &made.queue, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_rcv(of->queue, 0, NULL, &error));
    GETS(HAMLYN_TIMED_OUT, "came", hamlyn_rcv(of->queue, 0, &notification, &error));
    GETS(HAMLYN_TIMED_OUT, "came", hamlyn_rcv(of->queue, 1000, &notification, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_rcv_many(of->queue, NULL, 1, &count, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_rcv_many(of->queue, &notification, 1, NULL, &error));
    GETS(HAMLYN_INVALID, "longer", hamlyn_rcv_many(of->queue, &notification, too_long, &count, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_queue_lost(of->queue, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_queue_entries(of->queue, NULL, &error));

    hamlyn_slot_options options;
    memset(&options, 0, sizeof options);
    GETS(HAMLYN_INVALID, "null", hamlyn_open_slot(of->manager, of->area, NULL, NULL, &error));
    options.rights = 16;
    GETS(HAMLYN_INVALID, "rights", hamlyn_open_slot(of->manager, of->area, &options, &made.slot, &error));
    options.rights = 0;
    options.mode = 3;
    GETS(HAMLYN_INVALID, "mode", hamlyn_open_slot(of->manager, of->area, &options, &made.slot, &error));
    options.mode = HAMLYN_MODE_PARANOID;
    GETS(HAMLYN_INVALID, "metadata", hamlyn_open_slot(of->manager, of->area, &options, &made.slot, &error));
    options.mode = 0;
    options.counting_bits = 8;
    GETS(HAMLYN_INVALID, "32 or 64", hamlyn_open_slot(of->manager, of->area, &options, &made.slot, &error));
    options.counting_bits = 0;
    options.offset = 1;
    options.length_bytes = UINT64_MAX;
    GETS(HAMLYN_INVALID, "beyond", hamlyn_open_slot(of->manager, of->area, &options, &made.slot, &error));
    options.length_bytes = 65536;
    GETS(HAMLYN_INVALID, "fit", hamlyn_open_slot(of->manager, of->area, &options, &made.slot, &error));
    options.offset = 70000;
    options.length_bytes = 0;
    GETS(HAMLYN_INVALID, "fit", hamlyn_open_slot(of->manager, of->area, &options, &made.slot, &error));
    options.offset = 0;
    options.entries = 65536;
    GETS(HAMLYN_INVALID, "entries", hamlyn_open_slot(of->manager, of->area, &options, &made.slot, &error));
    options.entries = 0;
    options.counts_stores = 1;
    GETS(HAMLYN_INVALID, "entries", hamlyn_open_slot(of->manager, of->area, &options, &made.slot, &error));
    options.entries = 1;
    options.queue = of->queue;
    GETS(HAMLYN_INVALID, "queue", hamlyn_open_slot(of->manager, of->area, &options, &made.slot, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_slot_number(of->slot, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_fast_ticket(of->slot, 0, 1, NULL, &error));
    GETS(HAMLYN_INVALID, "do not lie", hamlyn_fast_ticket(of->slot, 1, UINT64_MAX, &ticket, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_entry_ticket(of->slot, 0, 0, 1, NULL, &error));
    GETS(HAMLYN_INVALID, "do not lie", hamlyn_entry_ticket(of->slot, 1, 0, 1, &ticket, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_get_slot_info(of->slot, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_slot_refusals(of->slot, 0, NULL, &error));
    GETS(HAMLYN_NOT_FOUND, "refusal", hamlyn_slot_refusals(of->slot, 9999, &word, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_refusals(of->manager, 0, NULL, &error));
    GETS(HAMLYN_NOT_FOUND, "refusal", hamlyn_refusals(of->manager, 9999, &word, &error));
    GETS(HAMLYN_NOT_FOUND, "refusal", hamlyn_refusal_text(9999, bytes, sizeof bytes, &error));
    OK(hamlyn_refusal_text(HAMLYN_REFUSED_BAD_KEY, bytes, sizeof bytes, &error));
    IS(strcmp(bytes, "wrong key") == 0);
    OK(hamlyn_refusal_text(HAMLYN_REFUSED_BAD_KEY, bytes, 4, &error));
    IS(strcmp(bytes, "wro") == 0);
    GETS(HAMLYN_INVALID, "entries", hamlyn_permit_entry(of->slot, 1, 0, 0, 0, &error));
    GETS(HAMLYN_INVALID, "entries", hamlyn_arm_entry(of->slot, 1, &error));
    GETS(HAMLYN_INVALID, "entries", hamlyn_disarm_entry(of->slot, HAMLYN_NO_ENTRY, &error));
    GETS(HAMLYN_INVALID, "entries", hamlyn_reset_entry(of->slot, 1, &error));
    GETS(HAMLYN_INVALID, "entries", hamlyn_set_entry_class(of->slot, 1, 0, &error));
    hamlyn_entry entry;
    GETS(HAMLYN_INVALID, "entries", hamlyn_get_entry(of->slot, 1, &entry, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_get_entry(of->slot, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "entries", hamlyn_stored_bytes(of->slot, 1, &word, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_stored_bytes(of->slot, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_new_key(of->manager, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_get_ticket_info(&ticket, NULL, &error));
    hamlyn_ticket damaged;
    hamlyn_ticket_info ticket_info;
    memset(&damaged, 0x5a, sizeof damaged);
    GETS(HAMLYN_INVALID, "check sum", hamlyn_get_ticket_info(&damaged, &ticket_info, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_get_ticket_info(NULL, &ticket_info, &error));

    GETS(HAMLYN_INVALID, "null", hamlyn_open_terminus(of->manager, 0, 0, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "entries", hamlyn_open_terminus(of->manager, 5000, 0, 0, &made.terminus, &error));
    GETS(HAMLYN_INVALID, "areas", hamlyn_open_terminus(of->manager, 0, 1025, 0, &made.terminus, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_bind_area(of->terminus, of->area, 0, 1, NULL, &error));
    GETS(HAMLYN_INVALID, "beyond", hamlyn_bind_area(of->terminus, of->area, 1, UINT64_MAX, &tag, &error));
    GETS(HAMLYN_INVALID, "area", hamlyn_bind_area(of->terminus, of->area, 0, 65537, &tag, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_open_target(of->terminus, NULL, 0, &made.target, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_open_target(of->terminus, &ticket, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "check sum", hamlyn_open_target(of->terminus, &damaged, 0, &made.target, &error));
    GETS(HAMLYN_INVALID, "check sum", hamlyn_retarget(of->target, &damaged, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_target_link(of->target, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_send_msg(of->target, NULL, 0, NULL, &error));
    hamlyn_outgoing_message bad = message;
    bad.length_bytes = 1;
    GETS(HAMLYN_INVALID, "null", hamlyn_send_msg(of->target, &bad, 0, NULL, &error));
    bad.data = bytes;
    bad.length_bytes = too_long;
    GETS(HAMLYN_INVALID, "longer", hamlyn_send_msg(of->target, &bad, 0, NULL, &error));
    bad.length_bytes = 1;
    bad.offset = UINT64_MAX;
    GETS(HAMLYN_TOO_LONG, "do not lie", hamlyn_send_msg(of->target, &bad, 0, NULL, &error));
    bad.offset = 0;
    bad.metadata = bytes;
    bad.metadata_bytes = 61;
    GETS(HAMLYN_INVALID, "metadata", hamlyn_send_msg(of->target, &bad, 0, NULL, &error));
    bad.metadata_bytes = 0;
    bad.share = UINT64_MAX;
    GETS(HAMLYN_INVALID, "share", hamlyn_send_msg(of->target, &bad, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "share", hamlyn_send_many(of->target, &bad, 1, 0, &count, NULL, &error));
    IS(count == 0);
    GETS(HAMLYN_INVALID, "null", hamlyn_send_many(of->target, NULL, 1, 0, &count, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_send_many(of->target, &message, 1, 0, NULL, NULL, &error));
    GETS(HAMLYN_INVALID, "memory", hamlyn_send_many(of->target, &message, too_long, 0, &count, NULL, &error));
    static hamlyn_piece pieces[1025];
    memset(pieces, 0, sizeof pieces);
    GETS(HAMLYN_INVALID, "null", hamlyn_send_gather(of->target, &message, NULL, 1, NULL, &error));
    GETS(HAMLYN_INVALID, "pieces", hamlyn_send_gather(of->target, &message, pieces, 1025, NULL, &error));
    pieces[0].tag = 7;
    GETS(HAMLYN_INVALID, "tag", hamlyn_send_gather(of->target, &message, pieces, 1, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_get_completion(of->target, 1, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_store(of->target, 0, NULL, 1, 0, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_packets_needed(1, 0, 64, NULL, &error));
    GETS(HAMLYN_INVALID, "64 bytes", hamlyn_packets_needed(1, 0, 0, &word, &error));
    uint64_t two[2] = {1, 1};
    GETS(HAMLYN_INVALID, "null", hamlyn_divide_share(0, 32, NULL, two, 2, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_divide_share(0, 32, two, NULL, 2, &error));
    GETS(HAMLYN_INVALID, "32 or 64", hamlyn_divide_share(0, 16, two, two, 2, &error));
    GETS(HAMLYN_INVALID, "at least one", hamlyn_divide_share(0, 32, two, two, 0, &error));
    GETS(HAMLYN_INVALID, "packets", hamlyn_divide_share(1, 32, two, two, 2, &error));
    GETS(HAMLYN_INVALID, "larger", hamlyn_divide_share(UINT64_MAX, 32, two, two, 2, &error));

    GETS(HAMLYN_INVALID, "null", hamlyn_open_initiator(of->manager, &ticket, 0, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_open_initiator(of->manager, NULL, 0, 0, &made.initiator, &error));
    hamlyn_ticket entry_ticket;
    OK(hamlyn_entry_ticket(of->slot, 0, 0, 1, &entry_ticket, &error));
    GETS(HAMLYN_INVALID, "hamlyn_fast_ticket", hamlyn_open_initiator(of->manager, &entry_ticket, 0, 0, &made.initiator, &error));
    GETS(HAMLYN_INVALID, "4 GiB", hamlyn_open_initiator(of->manager, &ticket, UINT64_MAX, 0, &made.initiator, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_begin_read(of->initiator, 0, 0, 1, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "do not lie", hamlyn_begin_read(of->initiator, UINT64_MAX, 0, 2, 0, &number, &error));
    GETS(HAMLYN_INVALID, "landing", hamlyn_begin_read(of->initiator, 0, UINT64_MAX, 2, 0, &number, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_begin_put(of->initiator, 0, NULL, 1, 0, &number, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_begin_atomic(of->initiator, 0, NULL, 0, &number, &error));
    GETS(HAMLYN_INVALID, "do not lie", hamlyn_begin_read_word(of->initiator, 65530, 0, &number, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_begin_read_strided(of->initiator, NULL, 0, 0, &number, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_begin_put_strided(of->initiator, NULL, "x", 1, 0, &number, &error));
    hamlyn_strided strided = {0, UINT64_MAX, 8, UINT64_MAX};
    GETS(HAMLYN_INVALID, "do not lie", hamlyn_begin_read_strided(of->initiator, &strided, 0, 0, &number, &error));
    strided.stride_bytes = 8;
    strided.pieces = 2;
    GETS(HAMLYN_INVALID, "pieces", hamlyn_begin_put_strided(of->initiator, &strided, "x", 1, 0, &number, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_begin_read_indexed(of->initiator, NULL, 1, 8, 0, 0, &number, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_begin_put_indexed(of->initiator, NULL, 1, 8, "x", 1, 0, &number, &error));
    GETS(HAMLYN_INVALID, "not outstanding", hamlyn_finish(of->initiator, 12345, 0, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_finish_word(of->initiator, 0, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_outstanding(of->initiator, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_landed(of->initiator, 0, NULL, 1, &error));
    GETS(HAMLYN_INVALID, "landing", hamlyn_landed(of->initiator, UINT64_MAX, bytes, 1, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_read(of->initiator, 0, NULL, 1, 0, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_put(of->initiator, 0, NULL, 1, 0, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_read_word(of->initiator, 0, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_change(of->initiator, 0, &change, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_change(of->initiator, 0, NULL, 0, &word, &error));
    GETS(HAMLYN_INVALID, "not outstanding", hamlyn_count_completion(of->initiator, 12345, of->counter, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_open_counter(NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_counts(of->counter, NULL, &word, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_counts(of->counter, &word, NULL, &error));

    hamlyn_region_ticket region_ticket;
    memset(&region_ticket, 0x5a, sizeof region_ticket);
#define SHARE(offset, length, access, link, region, ticket) hamlyn_share_region(of->slot, offset, length, access, link, region, ticket, &error)
    GETS(HAMLYN_INVALID, "null", SHARE(0, 4096, HAMLYN_REGION_WRITABLE, HAMLYN_ALL_LINKED, NULL, &region_ticket));
    GETS(HAMLYN_INVALID, "null", SHARE(0, 4096, HAMLYN_REGION_WRITABLE, HAMLYN_ALL_LINKED, &region, NULL));
    GETS(HAMLYN_INVALID, "grants READ alone", SHARE(0, 4096, HAMLYN_REGION_READ_ONLY, HAMLYN_ALL_LINKED, &region, &region_ticket));
    GETS(HAMLYN_INVALID, "HAMLYN_REGION_WRITABLE", SHARE(0, 4096, 2, HAMLYN_ALL_LINKED, &region, &region_ticket));
    GETS(HAMLYN_INVALID, "beyond", SHARE(1, UINT64_MAX, HAMLYN_REGION_WRITABLE, HAMLYN_ALL_LINKED, &region, &region_ticket));
    GETS(HAMLYN_INVALID, "made to be shared", SHARE(0, 4096, HAMLYN_REGION_WRITABLE, HAMLYN_ALL_LINKED, &region, &region_ticket));
    GETS(HAMLYN_PEER_LOST, "no link", SHARE(0, 4096, HAMLYN_REGION_WRITABLE, UINT64_MAX - 1, &region, &region_ticket));
    GETS(HAMLYN_INVALID, "null", hamlyn_attach_region(of->manager, NULL, 0, &made.attached, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_attach_region(of->manager, &region_ticket, 0, NULL, &error));
    GETS(HAMLYN_INVALID, "check sum", hamlyn_attach_region(of->manager, &region_ticket, 0, &made.attached, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_regions(of->manager, NULL, &count, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_open_attached_window(of->attached, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_open_initiator_window(of->initiator, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_get_window(of->window, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_read_window(of->window, 0, NULL, 1, &error));
    GETS(HAMLYN_INVALID, "window", hamlyn_read_window(of->window, 4096, bytes, 1, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_write_window(of->window, 0, NULL, 1, &error));
    GETS(HAMLYN_INVALID, "window", hamlyn_write_window(of->window, UINT64_MAX, bytes, 1, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_change_window(of->window, 0, &change, NULL, &error));
    GETS(HAMLYN_INVALID, "aligned", hamlyn_change_window(of->window, 4, &change, &word, &error));

    GETS(HAMLYN_INVALID, "null", hamlyn_connect(of->manager, NULL, 0, &word, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_connect(of->manager, "nobody", 0, NULL, &error));
    GETS(HAMLYN_NOT_FOUND, "nobody", hamlyn_connect(of->manager, "nobody", 1000, &word, &error));
    OK(hamlyn_disconnect(of->manager, UINT64_MAX, &error));
    hamlyn_peer peer;
    GETS(HAMLYN_INVALID, "null", hamlyn_link_peer(of->manager, 0, NULL, &error));
    GETS(HAMLYN_NOT_FOUND, "not known", hamlyn_link_peer(of->manager, UINT64_MAX, &peer, &error));
    GETS(HAMLYN_NOT_FOUND, "link", hamlyn_link_peer_name(of->manager, UINT64_MAX, bytes, sizeof bytes, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_peers(of->manager, NULL, 1, &count, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_peers(of->manager, &peer, 1, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_identity(of->manager, NULL, &error));
    hamlyn_link_state state;
    hamlyn_log_use log_use;
    GETS(HAMLYN_INVALID, "null", hamlyn_get_link_state(of->manager, 0, NULL, NULL, 0, &error));
    GETS(HAMLYN_NOT_FOUND, "host", hamlyn_get_link_state(of->manager, UINT64_MAX, &state, bytes, sizeof bytes, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_get_log_use(of->manager, 0, NULL, &error));
    GETS(HAMLYN_NOT_FOUND, "buffer_bytes_per_peer", hamlyn_get_log_use(of->manager, UINT64_MAX, &log_use, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_next_undelivered(of->manager, NULL, NULL, 0, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_undelivered_forgotten(of->manager, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_offer(of->manager, NULL, HAMLYN_OFFER_ALWAYS, "x", 1, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_offer(of->manager, "item", HAMLYN_OFFER_ALWAYS, NULL, 1, &error));
    GETS(HAMLYN_INVALID, "HAMLYN_OFFER_ALWAYS", hamlyn_offer(of->manager, "item", 3, "x", 1, &error));
    GETS(HAMLYN_INVALID, "1 to 1024", hamlyn_offer(of->manager, "item", HAMLYN_OFFER_ALWAYS, "", 0, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_withdraw(of->manager, NULL, &error));
    char enough[HAMLYN_OFFER_BYTES_MAX];
    GETS(HAMLYN_INVALID, "null", hamlyn_ask(of->manager, NULL, "item", 0, enough, sizeof enough, &count, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_ask(of->manager, "nobody", NULL, 0, enough, sizeof enough, &count, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_ask(of->manager, "nobody", "item", 0, NULL, sizeof enough, &count, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_ask(of->manager, "nobody", "item", 0, enough, sizeof enough, NULL, &error));
    GETS(HAMLYN_TOO_LONG, "room", hamlyn_ask(of->manager, "nobody", "item", 0, bytes, sizeof bytes, &count, &error));
    GETS(HAMLYN_NOT_FOUND, "nobody", hamlyn_ask(of->manager, "nobody", "item", 1000, enough, sizeof enough, &count, &error));
    OK(hamlyn_offer(of->manager, "own", HAMLYN_OFFER_ONCE, "once", 4, &error));
    OK(hamlyn_offer(of->manager, "own", HAMLYN_OFFER_AFTERWARDS, "later", 5, &error));
    OK(hamlyn_ask(of->manager, "lower-bad", "own", MINUTE, enough, sizeof enough, &count, &error));
    IS(count == 4 && memcmp(enough, "once", 4) == 0);
    OK(hamlyn_ask(of->manager, "lower-bad", "own", MINUTE, enough, sizeof enough, &count, &error));
    IS(count == 5 && memcmp(enough, "later", 5) == 0);
    OK(hamlyn_withdraw(of->manager, "own", &error));
    GETS(HAMLYN_NOT_FOUND, "own", hamlyn_ask(of->manager, "lower-bad", "own", 1000, enough, sizeof enough, &count, &error));
}

/* A queue that is too short loses notifications, and says so. */
static void overrun(const struct handles *of) {
    hamlyn_notification notifications[16];
    size_t count;
    for (int i = 0; i < 10; i++) {
        OK(hamlyn_send_msg(of->target, &message, MINUTE, NULL, &error));
    }
    OK(hamlyn_fence(of->manager, MINUTE, &error));
    size_t taken = 0;
    int overruns = 0;
    for (;;) {
        hamlyn_status status = hamlyn_rcv_many(of->queue, notifications, 16, &count, &error);
        taken += count;
        if (status == HAMLYN_OVERRUN) {
            overruns++;
            IS(strstr(error.text, "overwritten") != NULL);
            continue;
        }
        IS(status == HAMLYN_OK);
        if (count == 0) {
            break;
        }
    }
    uint64_t lost;
    OK(hamlyn_queue_lost(of->queue, &lost, &error));
    IS(overruns == 1 && lost + taken == 10 && lost >= 1);
}

/* Objects of two managers do not go together. */
static void two_managers(const struct handles *of) {
    hamlyn_manager *other;
    hamlyn_slot *slot;
    hamlyn_queue *queue;
    OK(hamlyn_open(NULL, &other, &error));
    hamlyn_slot_options options;
    memset(&options, 0, sizeof options);
    options.queue = of->queue;
    GETS(HAMLYN_INVALID, "another manager", hamlyn_open_slot(other, of->area, &options, &slot, &error));
    OK(hamlyn_open_queue(other, 4, &queue, &error));
    hamlyn_ticket elsewhere;
    OK(hamlyn_open_slot(other, of->area, NULL, &slot, &error));
    OK(hamlyn_fast_ticket(slot, 0, 1, &elsewhere, &error));
    GETS(HAMLYN_INVALID, "another interface", hamlyn_retarget(of->target, &elsewhere, &error));
    /* The manager's handle may go first. */
    OK(hamlyn_close(other, &error));
    OK(hamlyn_close_slot(slot, &error));
    OK(hamlyn_close_queue(queue, &error));
}

int main(void) {
    struct handles *of = &open_handles;
    OK(hamlyn_open("lower-bad", &of->manager, &error));
    OK(hamlyn_allocate_area(of->manager, 65536, HAMLYN_AREA_PRIVATE, &of->area, &error));
    OK(hamlyn_open_queue(of->manager, 4, &of->queue, &error));
    hamlyn_slot_options options;
    memset(&options, 0, sizeof options);
    options.queue = of->queue;
    options.entries = 1;
    OK(hamlyn_open_slot(of->manager, of->area, &options, &of->slot, &error));
    OK(hamlyn_fast_ticket(of->slot, 0, 65536, &ticket, &error));
    OK(hamlyn_open_terminus(of->manager, 0, 0, 0, &of->terminus, &error));
    OK(hamlyn_open_target(of->terminus, &ticket, MINUTE, &of->target, &error));
    OK(hamlyn_open_initiator(of->manager, &ticket, 0, MINUTE, &of->initiator, &error));
    OK(hamlyn_open_counter(&of->counter, &error));
    OK(hamlyn_open_area_window(of->area, 0, 4096, &of->window, &error));
    /* To have one of each: a region between two managers. */
    hamlyn_manager *peer;
    hamlyn_area *sparse;
    hamlyn_slot *all;
    hamlyn_region_ticket region_ticket;
    uint64_t link;
    OK(hamlyn_open("lower-bad-peer", &peer, &error));
    OK(hamlyn_allocate_area(peer, 4096, HAMLYN_AREA_SPARSE, &sparse, &error));
    memset(&options, 0, sizeof options);
    options.rights = HAMLYN_RIGHT_READ;
    OK(hamlyn_open_slot(peer, sparse, &options, &all, &error));
    OK(hamlyn_share_region(all, 0, 4096, HAMLYN_REGION_READ_ONLY, HAMLYN_ALL_LINKED, &of->region, &a_region, &error));
    hamlyn_region *again;
    GETS(HAMLYN_INVALID, "granted already", hamlyn_share_region(all, 0, 4096, HAMLYN_REGION_READ_ONLY, HAMLYN_ALL_LINKED, &again, &region_ticket, &error));
    GETS(HAMLYN_NOT_FOUND, "no link", hamlyn_attach_region(of->manager, &a_region, 0, &of->attached, &error));
    OK(hamlyn_connect(of->manager, "lower-bad-peer", MINUTE, &link, &error));
    OK(hamlyn_attach_region(of->manager, &a_region, MINUTE, &of->attached, &error));
    hamlyn_area *in_pieces;
    hamlyn_peer importer;
    uint64_t number;
    size_t peers;
    OK(hamlyn_allocate_handover(of->manager, 2, 64, &in_pieces, &of->handover, &error));
    OK(hamlyn_open_pool(64, 1, &of->pool, &error));
    OK(hamlyn_poll(peer, &error));
    OK(hamlyn_peers(peer, &importer, 1, &peers, &error));
    IS(peers == 1);
    OK(hamlyn_show_pool(peer, of->pool, importer.link, &number, &error));
    OK(hamlyn_fetch_pool(of->manager, link, number, MINUTE, &of->shared_pool, &error));

    /* Null, another kind, and another thread. */
    struct handles none;
    memset(&none, 0, sizeof none);
    every_handle_gets(&none, HAMLYN_BAD_HANDLE, "null", 0);
    every_close_gets(&none, HAMLYN_OK, 0);
    struct handles wrong = {
        .manager = (hamlyn_manager *)of->area,         .area = (hamlyn_area *)of->queue,
        .queue = (hamlyn_queue *)of->slot,             .slot = (hamlyn_slot *)of->terminus,
        .terminus = (hamlyn_terminus *)of->target,     .target = (hamlyn_target *)of->initiator,
        .initiator = (hamlyn_initiator *)of->counter,  .counter = (hamlyn_counter *)of->region,
        .region = (hamlyn_region *)of->attached,       .attached = (hamlyn_attached *)of->window,
        .window = (hamlyn_window *)of->handover,
        .handover = (hamlyn_handover *)of->pool,       .pool = (hamlyn_pool *)of->shared_pool,
        .shared_pool = (hamlyn_shared_pool *)of->manager,
    };
    every_handle_gets(&wrong, HAMLYN_BAD_HANDLE, "another kind", 0);
    every_close_gets(&wrong, HAMLYN_BAD_HANDLE, 0);
    pthread_t thread;
    IS(pthread_create(&thread, NULL, in_another_thread, NULL) == 0);
    IS(pthread_join(thread, NULL) == 0);

    nulls(of);
    overrun(of);
    two_managers(of);

    /* What its owner has ended is over for good. */
    OK(hamlyn_revoke_region(of->region, &error));
    GETS(HAMLYN_INVALID, "no such region", hamlyn_revoke_region(of->region, &error));
    OK(hamlyn_close_terminus(of->terminus, &error));
    GETS(HAMLYN_INVALID, "terminus", hamlyn_send_msg(of->target, &message, HAMLYN_POLL, NULL, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_close_terminus(of->terminus, &error));
    OK(hamlyn_open_terminus(of->manager, 0, 0, 0, &of->terminus, &error));

    /* Closed. */
    every_close_gets(of, HAMLYN_OK, 0);
    struct handles closed = *of;
    OK(hamlyn_close(of->manager, &error));
    every_handle_gets(&closed, HAMLYN_BAD_HANDLE, "closed", 0);
    every_close_gets(&closed, HAMLYN_BAD_HANDLE, 0);
    OK(hamlyn_close_slot(all, &error));
    OK(hamlyn_close_area(sparse, &error));
    OK(hamlyn_close_area(in_pieces, &error));
    OK(hamlyn_close(peer, &error));
    puts("passed");
    return 0;
}
