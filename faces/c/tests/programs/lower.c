/* The lower layer and one-sided operations between two programs: serve opens slots, ask sends to them. */
#include "checks.h"

#include <stdlib.h>

/* What serve does when it is told so by the word of a message. */
enum { CHECK_SHORT = 1, CHECK_LONG, REVOKE, REKEY, CHECK_GATHERED, CHECK_STORES, SHARE, REVOKE_PAGES, REVOKE_ALL, MANY = 100, END = 1000 };

struct tickets {
    hamlyn_ticket fast, entry, one_shot, stores, all, read_only;
};

static unsigned char long_data[40000];

static void fill(unsigned char *data, size_t length, unsigned seed) {
    for (size_t i = 0; i < length; i++) {
        data[i] = (unsigned char)(i * 7 + seed);
    }
}

/* ---- serve ---- */

static hamlyn_manager *manager;
static hamlyn_area *area;
static hamlyn_queue *queue;
static hamlyn_slot *slot, *guarded, *counted, *shared_slot, *read_slot, *paged_slot;
static hamlyn_region *all_of_it, *pages;
static hamlyn_area *sparse, *paged;

static void offer(const char *item, const void *data, size_t length) {
    OK(hamlyn_offer(manager, item, HAMLYN_OFFER_ALWAYS, data, length, &error));
}

static void said(const char *item) {
    offer(item, "yes", 3);
}

static void check_area(uint64_t offset, size_t length, unsigned seed) {
    static unsigned char expected[sizeof long_data], found[sizeof long_data];
    fill(expected, length, seed);
    OK(hamlyn_copy_from_area(area, offset, found, length, &error));
    IS(memcmp(expected, found, length) == 0);
}

static void open_slots(void) {
    OK(hamlyn_allocate_area(manager, 1 << 20, HAMLYN_AREA_PRIVATE, &area, &error));
    uint64_t area_bytes;
    OK(hamlyn_area_bytes(area, &area_bytes, &error));
    IS(area_bytes == 1 << 20);
    OK(hamlyn_open_queue(manager, 256, &queue, &error));
    size_t entries;
    OK(hamlyn_queue_entries(queue, &entries, &error));
    IS(entries == 256);

    struct tickets tickets;
    memset(&tickets, 0, sizeof tickets);
    hamlyn_slot_options options;
    memset(&options, 0, sizeof options);
    options.queue = queue;
    options.entries = 2;
    options.length_bytes = 256 * 1024;
    options.counting_bits = 64;
    OK(hamlyn_open_slot(manager, area, &options, &slot, &error));
    OK(hamlyn_fast_ticket(slot, 0, 128 * 1024, &tickets.fast, &error));
    OK(hamlyn_set_entry_class(slot, 1, 77, &error));
    OK(hamlyn_entry_ticket(slot, 1, 0, 128 * 1024, &tickets.entry, &error));
    hamlyn_ticket_info about;
    OK(hamlyn_get_ticket_info(&tickets.entry, &about, &error));
    IS(about.entry == 1 && about.counting_bits == 64 && about.length_bytes == 128 * 1024);
    uint32_t number;
    OK(hamlyn_slot_number(slot, &number, &error));
    IS(number == about.slot);

    /* One message for each arming, under a key that only this ticket has, into 64 bytes. */
    memset(&options, 0, sizeof options);
    options.queue = queue;
    options.entries = 1;
    options.mode = HAMLYN_MODE_ONE_SHOT;
    options.offset = 256 * 1024;
    options.length_bytes = 4096;
    OK(hamlyn_open_slot(manager, area, &options, &guarded, &error));
    uint64_t key;
    OK(hamlyn_new_key(manager, &key, &error));
    OK(hamlyn_permit_entry(guarded, 0, key, 64, 128, &error));
    OK(hamlyn_arm_entry(guarded, 0, &error));
    OK(hamlyn_entry_ticket(guarded, 0, 64, 64, &tickets.one_shot, &error));
    hamlyn_entry entry;
    OK(hamlyn_get_entry(guarded, 0, &entry, &error));
    IS(entry.armed && entry.key == key && entry.low == 64 && entry.high == 128);

    memset(&options, 0, sizeof options);
    options.entries = 1;
    options.counts_stores = 1;
    options.offset = 512 * 1024;
    options.length_bytes = 64 * 1024;
    OK(hamlyn_open_slot(manager, area, &options, &counted, &error));
    OK(hamlyn_entry_ticket(counted, 0, 0, 64 * 1024, &tickets.stores, &error));

    /* Memory that others read and change by themselves. */
    OK(hamlyn_allocate_area(manager, 64 * 1024, HAMLYN_AREA_SPARSE, &sparse, &error));
    memset(&options, 0, sizeof options);
    options.rights = HAMLYN_RIGHT_WRITE | HAMLYN_RIGHT_READ | HAMLYN_RIGHT_ATOMIC;
    OK(hamlyn_open_slot(manager, sparse, &options, &shared_slot, &error));
    OK(hamlyn_fast_ticket(shared_slot, 0, 64 * 1024, &tickets.all, &error));
    hamlyn_region_ticket travels;
    OK(hamlyn_share_region(shared_slot, 0, 64 * 1024, HAMLYN_REGION_WRITABLE, HAMLYN_ALL_LINKED, &all_of_it, &travels, &error));
    offer("region", &travels, sizeof travels);
    options.rights = HAMLYN_RIGHT_READ;
    options.offset = 768 * 1024;
    options.length_bytes = 4096;
    OK(hamlyn_open_slot(manager, area, &options, &read_slot, &error));
    OK(hamlyn_fast_ticket(read_slot, 0, 4096, &tickets.read_only, &error));
    offer("tickets", &tickets, sizeof tickets);
}

static void check_one_shot(void) {
    /* The permission and the arming let in exactly one message, with its metadata. */
    hamlyn_notification came;
    OK(hamlyn_rcv(queue, MINUTE, &came, &error));
    uint32_t number;
    OK(hamlyn_slot_number(guarded, &number, &error));
    IS(came.slot == number && came.entry == 0);
    hamlyn_entry entry;
    OK(hamlyn_get_entry(guarded, 0, &entry, &error));
    IS(!entry.armed && entry.metadata_bytes == 5 && memcmp(entry.metadata, "alpha", 5) == 0);
    check_area(256 * 1024 + 64, 64, 4);
}

static void share_pages(uint64_t link) {
    OK(hamlyn_allocate_area(manager, 64 * 1024, HAMLYN_AREA_SHARED, &paged, &error));
    hamlyn_slot_options options;
    memset(&options, 0, sizeof options);
    options.queue = queue;
    OK(hamlyn_open_slot(manager, paged, &options, &paged_slot, &error));
    struct {
        hamlyn_region_ticket pages;
        hamlyn_ticket ticket;
    } travels;
    OK(hamlyn_share_region(paged_slot, 0, 64 * 1024, HAMLYN_REGION_WRITABLE, link, &pages, &travels.pages, &error));
    OK(hamlyn_fast_ticket(paged_slot, 0, 64 * 1024, &travels.ticket, &error));
    offer("pages", &travels, sizeof travels);
    hamlyn_notification came;
    OK(hamlyn_rcv(queue, MINUTE, &came, &error));
    uint32_t number;
    OK(hamlyn_slot_number(paged_slot, &number, &error));
    IS(came.slot == number && came.word == 5);
    static unsigned char expected[20000], found[20000];
    fill(expected, sizeof expected, 5);
    OK(hamlyn_copy_from_area(paged, 0, found, sizeof found, &error));
    IS(memcmp(expected, found, sizeof found) == 0);
    hamlyn_slot_info info;
    OK(hamlyn_get_slot_info(paged_slot, &info, &error));
    IS(info.grants == 1);
}

static void serve(void) {
    open_slots();
    int many = 0;
    for (;;) {
        hamlyn_notification came;
        OK(hamlyn_rcv(queue, MINUTE, &came, &error));
        hamlyn_peer peer;
        OK(hamlyn_link_peer(manager, came.link, &peer, &error));
        IS(peer.user == getuid() && peer.link == came.link);
        OK(hamlyn_check_link(manager, came.link, &error));
        if (came.entry == 1) {
            IS(came.word == 77);
            hamlyn_entry entry;
            OK(hamlyn_get_entry(slot, 1, &entry, &error));
            IS(entry.metadata_bytes == 60 && entry.receive_class == 77 && entry.accumulator == 0);
            IS(entry.metadata[0] == 9 && entry.metadata[59] == 9);
            check_area(41000, 40000, 2);
            check_one_shot();
            said("one-shot");
            continue;
        }
        IS(came.entry == HAMLYN_NO_ENTRY);
        switch (came.word) {
        case CHECK_SHORT:
            check_area(110000, 16, 1);
            break;
        case CHECK_LONG:
            check_area(0, sizeof long_data, 3);
            break;
        case REVOKE:
            OK(hamlyn_revoke_slot(guarded, &error));
            said("revoked");
            break;
        case REKEY: {
            hamlyn_slot_info info;
            OK(hamlyn_get_slot_info(guarded, &info, &error));
            IS(info.revoked && info.mode == HAMLYN_MODE_ONE_SHOT && info.entries == 1);
            uint64_t refused, all;
            OK(hamlyn_slot_refusals(guarded, HAMLYN_REFUSED_SLOT_REVOKED, &refused, &error));
            OK(hamlyn_refusals(manager, HAMLYN_REFUSED_SLOT_REVOKED, &all, &error));
            IS(refused == 1 && all == 1 && info.refusals >= 1);
            OK(hamlyn_slot_refusals(guarded, HAMLYN_REFUSED_ENTRY_SPENT, &refused, &error));
            IS(refused == 1);
            OK(hamlyn_rekey_slot(guarded, &error));
            OK(hamlyn_get_slot_info(guarded, &info, &error));
            IS(!info.revoked);
            said("rekeyed");
            break;
        }
        case CHECK_GATHERED:
            check_area(90000, 1500, 6);
            break;
        case CHECK_STORES: {
            uint64_t stored = 0;
            while (stored < 30000) {
                OK(hamlyn_poll(manager, &error));
                OK(hamlyn_stored_bytes(counted, 0, &stored, &error));
            }
            IS(stored == 30000);
            check_area(512 * 1024 + 10, 30000, 7);
            said("stored");
            break;
        }
        case SHARE:
            share_pages(came.link);
            said("placed");
            break;
        case REVOKE_PAGES:
            OK(hamlyn_revoke_region(pages, &error));
            said("pages-over");
            break;
        case REVOKE_ALL: {
            uint64_t word;
            OK(hamlyn_load_from_area(sparse, 64, &word, &error));
            IS(word == 11);
            OK(hamlyn_revoke_region(all_of_it, &error));
            said("region-over");
            break;
        }
        case END: {
            IS(many == 20);
            size_t peers;
            hamlyn_peer peers_found[4];
            OK(hamlyn_peers(manager, peers_found, 4, &peers, &error));
            IS(peers == 1 && peers_found[0].link == came.link);
            char name[65];
            OK(hamlyn_link_peer_name(manager, came.link, name, sizeof name, &error));
            IS(strcmp(name, "lower-asks") == 0);
            OK(hamlyn_close_region(pages, &error));
            OK(hamlyn_close_region(all_of_it, &error));
            OK(hamlyn_close_slot(paged_slot, &error));
            OK(hamlyn_close_slot(read_slot, &error));
            OK(hamlyn_close_slot(shared_slot, &error));
            OK(hamlyn_close_slot(counted, &error));
            OK(hamlyn_close_slot(guarded, &error));
            OK(hamlyn_close_slot(slot, &error));
            OK(hamlyn_close_queue(queue, &error));
            OK(hamlyn_close_area(area, &error));
            OK(hamlyn_close_area(sparse, &error));
            OK(hamlyn_close_area(paged, &error));
            /* The peer goes first, once all was seen of it, and that is told. */
            said("ended");
            hamlyn_event event;
            do {
                OK(hamlyn_next_event(manager, MINUTE, &event, NULL, 0, &error));
            } while (event.kind != HAMLYN_PEER_LEFT);
            GETS(HAMLYN_PEER_LOST, "not up", hamlyn_check_link(manager, came.link, &error));
            OK(hamlyn_close(manager, &error));
            return;
        }
        default:
            IS(came.word >= MANY && came.word < MANY + 20);
            IS(came.word == (uint64_t)(MANY + many));
            many++;
        }
    }
}

/* ---- ask ---- */

static hamlyn_terminus *terminus;
static hamlyn_target *fast;

static void ask_for(const char *item, void *into, size_t length) {
    unsigned char answer[HAMLYN_OFFER_BYTES_MAX];
    size_t found;
    OK(hamlyn_ask(manager, "lower-serves", item, MINUTE, answer, sizeof answer, &found, &error));
    IS(found == length);
    memcpy(into, answer, length);
}

static void await(const char *item) {
    char yes[3];
    ask_for(item, yes, 3);
}

static hamlyn_outgoing_message message_of(const void *data, size_t length, uint64_t offset, uint64_t word) {
    hamlyn_outgoing_message message;
    memset(&message, 0, sizeof message);
    message.data = data;
    message.length_bytes = length;
    message.offset = offset;
    message.word = word;
    return message;
}

static void send_fast(const void *data, size_t length, uint64_t offset, uint64_t word) {
    hamlyn_outgoing_message message = message_of(data, length, offset, word);
    OK(hamlyn_send_msg(fast, &message, MINUTE, NULL, &error));
}

static void tell(uint64_t word) {
    send_fast(NULL, 0, 0, word);
}

static void send_messages(const struct tickets *tickets) {
    unsigned char short_data[16];
    fill(short_data, sizeof short_data, 1);
    send_fast(short_data, sizeof short_data, 110000, CHECK_SHORT);
    fill(long_data, sizeof long_data, 3);
    send_fast(long_data, sizeof long_data, 0, CHECK_LONG);
    hamlyn_outgoing_message many[20];
    for (int i = 0; i < 20; i++) {
        many[i] = message_of("x", 1, 100000, (uint64_t)(MANY + i));
    }
    size_t sent;
    uint64_t sequence;
    OK(hamlyn_send_many(fast, many, 20, MINUTE, &sent, &sequence, &error));
    IS(sent == 20);
    hamlyn_completion completion = HAMLYN_MESSAGE_PENDING;
    while (completion == HAMLYN_MESSAGE_PENDING) {
        OK(hamlyn_poll(manager, &error));
        OK(hamlyn_get_completion(fast, sequence, &completion, &error));
    }
    IS(completion == HAMLYN_MESSAGE_SENT);

    /* With metadata, by two who share its count. */
    hamlyn_target *entry;
    OK(hamlyn_open_target(terminus, &tickets->entry, MINUTE, &entry, &error));
    uint64_t needed[2], shares[2];
    for (int part = 0; part < 2; part++) {
        OK(hamlyn_packets_needed(20000, 60, 64, &needed[part], &error));
    }
    IS(needed[0] > 20000 / 64);
    OK(hamlyn_divide_share(0, 64, needed, shares, 2, &error));
    fill(long_data, sizeof long_data, 2);
    unsigned char metadata[60];
    memset(metadata, 9, sizeof metadata);
    for (int part = 0; part < 2; part++) {
        hamlyn_outgoing_message message = message_of(long_data + part * 20000, 20000, (uint64_t)(41000 + part * 20000), 0);
        message.metadata = metadata;
        message.metadata_bytes = sizeof metadata;
        message.share = shares[part];
        OK(hamlyn_send_msg(entry, &message, MINUTE, NULL, &error));
    }

    /* One shot: a second is refused, and its sender is told so. */
    OK(hamlyn_retarget(entry, &tickets->one_shot, &error));
    fill(long_data, 64, 4);
    hamlyn_outgoing_message message = message_of(long_data, 64, 0, 0);
    message.metadata = "alpha";
    message.metadata_bytes = 5;
    OK(hamlyn_send_msg(entry, &message, MINUTE, NULL, &error));
    uint64_t link;
    OK(hamlyn_target_link(entry, &link, &error));
    OK(hamlyn_fence_link(manager, link, MINUTE, &error));
    await("one-shot");
    OK(hamlyn_send_msg(entry, &message, MINUTE, NULL, &error));
    GETS(HAMLYN_REFUSED, "spent", hamlyn_fence_link(manager, link, MINUTE, &error));
    hamlyn_undelivered undelivered;
    char text[200];
    OK(hamlyn_next_undelivered(manager, &undelivered, text, sizeof text, &error));
    IS(undelivered.reason == HAMLYN_REFUSED_ENTRY_SPENT && undelivered.entry == 0);
    IS(undelivered.length_bytes == 64 && undelivered.offset == 64 && strstr(text, "spent"));
    GETS(HAMLYN_TIMED_OUT, "", hamlyn_next_undelivered(manager, &undelivered, text, sizeof text, &error));
    uint64_t forgotten;
    OK(hamlyn_undelivered_forgotten(manager, &forgotten, &error));
    IS(forgotten == 0);

    /* Revoked: refused for that. */
    tell(REVOKE);
    await("revoked");
    OK(hamlyn_send_msg(entry, &message, MINUTE, NULL, &error));
    GETS(HAMLYN_REFUSED, "revoked", hamlyn_fence(manager, MINUTE, &error));
    tell(REKEY);
    await("rekeyed");
    OK(hamlyn_close_target(entry, &error));

    /* Gathered from two places. */
    hamlyn_area *from;
    OK(hamlyn_allocate_area(manager, 8192, HAMLYN_AREA_PRIVATE, &from, &error));
    fill(long_data, 1500, 6);
    OK(hamlyn_copy_to_area(from, 100, long_data, 1000, &error));
    OK(hamlyn_copy_to_area(from, 5000, long_data + 1000, 500, &error));
    uint16_t tags[2];
    OK(hamlyn_bind_area(terminus, from, 0, 4096, &tags[0], &error));
    OK(hamlyn_bind_area(terminus, from, 4096, 4096, &tags[1], &error));
    hamlyn_piece pieces[2];
    memset(pieces, 0, sizeof pieces);
    pieces[0].tag = tags[0];
    pieces[0].offset = 100;
    pieces[0].length_bytes = 1000;
    pieces[1].tag = tags[1];
    pieces[1].offset = 5000 - 4096;
    pieces[1].length_bytes = 500;
    message = message_of(NULL, 0, 90000, CHECK_GATHERED);
    OK(hamlyn_send_gather(fast, &message, pieces, 2, &sequence, &error));
    OK(hamlyn_flush(manager, MINUTE, &error));
    OK(hamlyn_get_completion(fast, sequence, &completion, &error));
    IS(completion == HAMLYN_MESSAGE_SENT);
    OK(hamlyn_unbind_area(terminus, tags[0], &error));
    GETS(HAMLYN_INVALID, "tag", hamlyn_unbind_area(terminus, tags[0], &error));
    OK(hamlyn_close_area(from, &error));

    /* Counted by its target. */
    hamlyn_target *stores;
    OK(hamlyn_open_target(terminus, &tickets->stores, MINUTE, &stores, &error));
    fill(long_data, 30000, 7);
    for (size_t at = 0; at < 30000; at += 10000) {
        OK(hamlyn_store(stores, 10 + at, long_data + at, 10000, MINUTE, &error));
    }
    tell(CHECK_STORES);
    await("stored");
    GETS(HAMLYN_INVALID, "counts stores", hamlyn_store(fast, 0, "x", 1, MINUTE, &error));
    OK(hamlyn_close_target(stores, &error));
}

static void place_messages(void) {
    tell(SHARE);
    struct {
        hamlyn_region_ticket pages;
        hamlyn_ticket ticket;
    } travels;
    ask_for("pages", &travels, sizeof travels);
    hamlyn_attached *attached;
    OK(hamlyn_attach_region(manager, &travels.pages, MINUTE, &attached, &error));
    size_t made, accepted;
    OK(hamlyn_regions(manager, &made, &accepted, &error));
    IS(made == 0 && accepted == 1);
    hamlyn_target *placed;
    OK(hamlyn_open_target(terminus, &travels.ticket, MINUTE, &placed, &error));
    fill(long_data, 20000, 5);
    hamlyn_outgoing_message message = message_of(long_data, 20000, 0, 5);
    OK(hamlyn_send_msg(placed, &message, MINUTE, NULL, &error));
    await("placed");
    OK(hamlyn_close_attached(attached, &error));
    tell(REVOKE_PAGES);
    await("pages-over");
    OK(hamlyn_close_target(placed, &error));
}

static void operate(hamlyn_initiator *initiator) {
    /* Waiting for each. */
    fill(long_data, 20000, 8);
    OK(hamlyn_put(initiator, 1024, long_data, 20000, MINUTE, &error));
    unsigned char found[20000];
    OK(hamlyn_read(initiator, 1024, found, sizeof found, MINUTE, &error));
    IS(memcmp(found, long_data, sizeof found) == 0);
    uint64_t word, before;
    OK(hamlyn_read_word(initiator, 0, MINUTE, &word, &error));
    const struct {
        uint32_t change;
        uint64_t operand, expected, leaves;
    } changes[] = {
        {HAMLYN_CHANGE_SWAP, 12, 0, 12},
        {HAMLYN_CHANGE_ADD, 3, 0, 15},
        {HAMLYN_CHANGE_AND, 6, 0, 6},
        {HAMLYN_CHANGE_OR, 9, 0, 15},
        {HAMLYN_CHANGE_XOR, 5, 0, 10},
        {HAMLYN_CHANGE_MIN, UINT64_MAX, 0, UINT64_MAX},
        {HAMLYN_CHANGE_MAX, 4, 0, 4},
        {HAMLYN_CHANGE_COMPARE_SWAP, 1, 99, 4},
        {HAMLYN_CHANGE_COMPARE_SWAP, 1, 4, 1},
    };
    uint64_t value = word;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        hamlyn_atomic_change change = {changes[i].change, 64, changes[i].operand, changes[i].expected};
        OK(hamlyn_change(initiator, 0, &change, MINUTE, &before, &error));
        IS(before == value);
        value = changes[i].leaves;
        OK(hamlyn_read_word(initiator, 0, MINUTE, &word, &error));
        IS(word == value);
    }
    double half = 0.5, sum;
    hamlyn_atomic_change add = {HAMLYN_CHANGE_FLOAT_ADD, 64, 0, 0};
    memcpy(&add.operand, &half, 8);
    hamlyn_atomic_change zero = {HAMLYN_CHANGE_SWAP, 0, 0, 0};
    OK(hamlyn_change(initiator, 8, &zero, MINUTE, &before, &error));
    OK(hamlyn_change(initiator, 8, &add, MINUTE, &before, &error));
    OK(hamlyn_change(initiator, 8, &add, MINUTE, &before, &error));
    OK(hamlyn_read_word(initiator, 8, MINUTE, &word, &error));
    memcpy(&sum, &word, 8);
    IS(sum == 1.0);
    hamlyn_atomic_change half_word = {HAMLYN_CHANGE_SWAP, 32, 7, 0};
    OK(hamlyn_change(initiator, 20, &half_word, MINUTE, &before, &error));
    OK(hamlyn_change(initiator, 20, &half_word, MINUTE, &before, &error));
    IS(before == 7);

    /* Many at a time. */
    uint32_t operations[4];
    fill(found, 300, 9);
    hamlyn_strided strided = {30000, 200, 100, 3};
    const uint64_t offsets[3] = {31000, 31500, 31250};
    OK(hamlyn_begin_put_strided(initiator, &strided, found, 300, MINUTE, &operations[0], &error));
    OK(hamlyn_begin_put_indexed(initiator, offsets, 3, 100, found, 300, MINUTE, &operations[1], &error));
    OK(hamlyn_begin_put(initiator, 32000, found, 300, MINUTE, &operations[2], &error));
    size_t outstanding;
    OK(hamlyn_outstanding(initiator, &outstanding, &error));
    IS(outstanding == 3);
    OK(hamlyn_finish_all(initiator, MINUTE, &error));
    GETS(HAMLYN_INVALID, "not outstanding", hamlyn_finish(initiator, operations[0], MINUTE, &error));
    OK(hamlyn_begin_read_strided(initiator, &strided, 0, MINUTE, &operations[0], &error));
    OK(hamlyn_begin_read_indexed(initiator, offsets, 3, 100, 1000, MINUTE, &operations[1], &error));
    OK(hamlyn_begin_read(initiator, 32000, 2000, 300, MINUTE, &operations[2], &error));
    OK(hamlyn_begin_read_word(initiator, 0, MINUTE, &operations[3], &error));
    OK(hamlyn_finish_word(initiator, operations[3], MINUTE, &word, &error));
    IS(word == 1);
    for (int i = 0; i < 3; i++) {
        OK(hamlyn_finish(initiator, operations[i], MINUTE, &error));
        unsigned char landed[300];
        OK(hamlyn_landed(initiator, (uint64_t)i * 1000, landed, 300, &error));
        IS(memcmp(landed, found, 300) == 0);
    }
    hamlyn_atomic_change one = {HAMLYN_CHANGE_ADD, 64, 1, 0};
    OK(hamlyn_begin_atomic(initiator, 0, &one, MINUTE, &operations[0], &error));
    OK(hamlyn_finish_word(initiator, operations[0], MINUTE, &before, &error));
    IS(before == 1);

    /* Ends that are counted. */
    hamlyn_counter *counter;
    OK(hamlyn_open_counter(&counter, &error));
    for (uint64_t i = 0; i < 5; i++) {
        OK(hamlyn_begin_atomic(initiator, 0, &one, MINUTE, &operations[0], &error));
        OK(hamlyn_count_completion(initiator, operations[0], counter, &error));
    }
    OK(hamlyn_await_completions(manager, counter, 5, MINUTE, &error));
    uint64_t completed, failed;
    OK(hamlyn_counts(counter, &completed, &failed, &error));
    IS(completed == 5 && failed == 0);
    GETS(HAMLYN_TIMED_OUT, "", hamlyn_await_completions(manager, counter, 6, HAMLYN_POLL, &error));
    OK(hamlyn_close_counter(counter, &error));
    OK(hamlyn_read_word(initiator, 0, MINUTE, &word, &error));
    IS(word == 7);
}

static void operate_in_all_ways(const struct tickets *tickets) {
    hamlyn_initiator *initiator;
    OK(hamlyn_open_initiator(manager, &tickets->all, 0, MINUTE, &initiator, &error));
    operate(initiator);
    hamlyn_window *window;
    GETS(HAMLYN_NOT_FOUND, "attached", hamlyn_open_initiator_window(initiator, &window, &error));
    OK(hamlyn_close_initiator(initiator, &error));

    /* The same in memory that is mapped here. */
    hamlyn_region_ticket travels;
    ask_for("region", &travels, sizeof travels);
    hamlyn_attached *attached;
    OK(hamlyn_attach_region(manager, &travels, MINUTE, &attached, &error));
    OK(hamlyn_check_attached(attached, &error));
    OK(hamlyn_open_initiator(manager, &tickets->all, 0, MINUTE, &initiator, &error));
    operate(initiator);
    OK(hamlyn_open_initiator_window(initiator, &window, &error));
    hamlyn_window_info info;
    OK(hamlyn_get_window(window, &info, &error));
    IS(info.length_bytes == 64 * 1024 && info.is_writable && info.lasts);
    OK(hamlyn_write_window(window, 64, "\012\0\0\0\0\0\0\0", 8, &error));
    IS(((volatile unsigned char *)info.data)[64] == 10);
    hamlyn_atomic_change one = {HAMLYN_CHANGE_ADD, 64, 1, 0};
    uint64_t before, word;
    OK(hamlyn_change_window(window, 64, &one, &before, &error));
    OK(hamlyn_read_window(window, 64, &word, 8, &error));
    IS(before == 10 && word == 11);
    hamlyn_window *whole;
    OK(hamlyn_open_attached_window(attached, &whole, &error));
    tell(REVOKE_ALL);
    await("region-over");
    GETS(HAMLYN_PEER_LOST, "ended", hamlyn_check_attached(attached, &error));
    OK(hamlyn_get_window(whole, &info, &error));
    IS(!info.lasts);
    /* Operations go as packets again. */
    OK(hamlyn_read_word(initiator, 64, MINUTE, &word, &error));
    IS(word == 11);
    OK(hamlyn_close_window(whole, &error));
    OK(hamlyn_close_window(window, &error));
    OK(hamlyn_close_attached(attached, &error));
    OK(hamlyn_close_initiator(initiator, &error));

    /* What is not granted is refused, and has no effect. */
    OK(hamlyn_open_initiator(manager, &tickets->read_only, 64, MINUTE, &initiator, &error));
    OK(hamlyn_read_word(initiator, 0, MINUTE, &word, &error));
    IS(word == 0);
    GETS(HAMLYN_REFUSED, "does not grant", hamlyn_put(initiator, 0, "x", 1, MINUTE, &error));
    GETS(HAMLYN_REFUSED, "does not grant", hamlyn_change(initiator, 0, &one, MINUTE, &before, &error));
    /* A fence tells of what was refused, too. */
    GETS(HAMLYN_REFUSED, "does not grant", hamlyn_fence(manager, MINUTE, &error));
    /* A read that is waited for needs no landing memory, and disturbs none that is under way. */
    unsigned char more[65], landed[64];
    uint32_t operation;
    GETS(HAMLYN_INVALID, "landing", hamlyn_begin_read(initiator, 0, 0, sizeof more, MINUTE, &operation, &error));
    OK(hamlyn_begin_read(initiator, 0, 0, sizeof landed, MINUTE, &operation, &error));
    memset(more, 1, sizeof more);
    OK(hamlyn_read(initiator, 0, more, sizeof more, MINUTE, &error));
    OK(hamlyn_finish(initiator, operation, MINUTE, &error));
    OK(hamlyn_landed(initiator, 0, landed, sizeof landed, &error));
    IS(memcmp(landed, more, sizeof landed) == 0);
    OK(hamlyn_close_initiator(initiator, &error));
}

static void ask(void) {
    struct tickets tickets;
    ask_for("tickets", &tickets, sizeof tickets);
    OK(hamlyn_open_terminus(manager, 0, 0, 0, &terminus, &error));
    OK(hamlyn_open_target(terminus, &tickets.fast, MINUTE, &fast, &error));
    uint64_t link, connected;
    OK(hamlyn_target_link(fast, &link, &error));
    OK(hamlyn_connect(manager, "lower-serves", MINUTE, &connected, &error));
    IS(link == connected);
    send_messages(&tickets);
    place_messages();
    operate_in_all_ways(&tickets);
    tell(END);
    await("ended");
    OK(hamlyn_flush(manager, MINUTE, &error));
    OK(hamlyn_fence_link(manager, link, MINUTE, &error));
    OK(hamlyn_disconnect(manager, link, &error));
    GETS(HAMLYN_PEER_LOST, "closed", hamlyn_check_link(manager, link, &error));
    hamlyn_outgoing_message message = message_of("x", 1, 0, 0);
    GETS(HAMLYN_PEER_LOST, "", hamlyn_send_msg(fast, &message, HAMLYN_POLL, NULL, &error));
    OK(hamlyn_close_target(fast, &error));
    OK(hamlyn_close_terminus(terminus, &error));
    OK(hamlyn_close(manager, &error));
}

int main(int count, char **arguments) {
    IS(count == 3);
    who = arguments[1];
    int serves = strcmp(who, "serve") == 0;
    hamlyn_options options;
    OK(hamlyn_default_options(&options, &error));
    options.name = serves ? "lower-serves" : "lower-asks";
    options.strategy = (uint32_t)atoi(arguments[2]);
    OK(hamlyn_open_with(&options, &manager, &error));
    hamlyn_peer self;
    OK(hamlyn_identity(manager, &self, &error));
    IS(self.user == getuid() && self.interface_number != 0);
    if (serves) {
        serve();
    } else {
        ask();
    }
    puts("passed");
    return 0;
}
