/* Memory that changes hands, pools, metadata out of areas, and areas at chosen addresses: two managers of one program. */
#include "checks.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { PIECES = 4, PIECE_BYTES = 4096 };

static hamlyn_manager *here, *there;
static hamlyn_terminus *terminus;

/* What comes to `there` comes in its own calls. */
static void arrives(hamlyn_queue *queue, uint64_t word) {
    hamlyn_notification came;
    OK(hamlyn_flush(here, MINUTE, &error));
    OK(hamlyn_rcv(queue, MINUTE, &came, &error));
    IS(came.word == word);
}

static void sends(hamlyn_target *target, const char *text, uint64_t offset, const char *metadata) {
    hamlyn_outgoing_message message;
    memset(&message, 0, sizeof message);
    message.data = text;
    message.length_bytes = strlen(text);
    message.offset = offset;
    message.metadata = metadata;
    message.metadata_bytes = metadata == NULL ? 0 : strlen(metadata);
    OK(hamlyn_send_msg(target, &message, MINUTE, NULL, &error));
}

static hamlyn_handover_info info_of(hamlyn_handover *handover) {
    hamlyn_handover_info info;
    OK(hamlyn_get_handover_info(handover, &info, &error));
    IS(info.pieces == PIECES && info.piece_bytes == PIECE_BYTES);
    return info;
}

static uint32_t is_held(hamlyn_handover *handover, uint32_t piece) {
    uint32_t held;
    OK(hamlyn_is_piece_held(handover, piece, &held, &error));
    return held;
}

/* A message goes into an open piece, which is the program's then; and peers write it again when it is opened again. */
static void an_area_changes_hands(void) {
    hamlyn_area *area;
    hamlyn_handover *handover;
    hamlyn_queue *queue;
    hamlyn_slot *slot, *second;
    hamlyn_slot_options options;
    hamlyn_ticket tickets[2];
    hamlyn_target *targets[2];
    const void *at, *again;
    uint64_t refusals;
    char copied[4];
    GETS(HAMLYN_INVALID, "power of two", hamlyn_allocate_handover(there, PIECES, 1000, &area, &handover, &error));
    GETS(HAMLYN_SYSTEM, "", hamlyn_allocate_handover(there, UINT32_MAX, 1u << 31, &area, &handover, &error));
    OK(hamlyn_allocate_handover(there, PIECES, PIECE_BYTES, &area, &handover, &error));
    IS(info_of(handover).held == PIECES && info_of(handover).viewed == 0);
    OK(hamlyn_open_queue(there, 16, &queue, &error));
    memset(&options, 0, sizeof options);
    options.queue = queue;
    options.entries = 2;
    options.mode = HAMLYN_MODE_ONE_SHOT;
    OK(hamlyn_open_slot(there, area, &options, &slot, &error));
    /* The first entry has the second piece, the other this and the next. */
    for (uint16_t entry = 0; entry < 2; entry++) {
        uint64_t key;
        OK(hamlyn_new_key(there, &key, &error));
        OK(hamlyn_permit_entry(slot, entry, key, PIECE_BYTES, (2u + entry) * PIECE_BYTES, &error));
        OK(hamlyn_set_entry_class(slot, entry, 10u + entry, &error));
        OK(hamlyn_arm_entry(slot, entry, &error));
        OK(hamlyn_entry_ticket(slot, entry, PIECE_BYTES, (1u + entry) * PIECE_BYTES, &tickets[entry], &error));
        OK(hamlyn_open_target(terminus, &tickets[entry], MINUTE, &targets[entry], &error));
    }

    /* The slot has it now: no other may have it, and its handle only reads. */
    GETS(HAMLYN_HELD, "handed over", hamlyn_open_slot(there, area, NULL, &second, &error));
    GETS(HAMLYN_HELD, "handed over", hamlyn_copy_to_area(area, 0, "x", 1, &error));
    GETS(HAMLYN_HELD, "handed over", hamlyn_fill_area(area, 0, 1, 1, &error));
    GETS(HAMLYN_HELD, "handed over", hamlyn_store_to_area(area, 0, 1, &error));
    hamlyn_atomic_change change = {HAMLYN_CHANGE_ADD, 64, 1, 0};
    GETS(HAMLYN_HELD, "handed over", hamlyn_change_area(area, 0, &change, NULL, &error));
    hamlyn_window *window;
    GETS(HAMLYN_INVALID, "changes hands", hamlyn_open_area_window(area, 0, 16, &window, &error));

    /* All pieces are the program's: what is sent to one is refused. */
    sends(targets[0], "too early", 0, NULL);
    GETS(HAMLYN_TIMED_OUT, "not taken", hamlyn_fence(here, 1, &error));
    OK(hamlyn_poll(there, &error));
    GETS(HAMLYN_REFUSED, "in use", hamlyn_fence(here, MINUTE, &error));
    OK(hamlyn_slot_refusals(slot, HAMLYN_REFUSED_PLACE_IN_USE, &refusals, &error));
    IS(refusals == 1);

    OK(hamlyn_open_pieces(handover, 1, 2, &error));
    IS(info_of(handover).held == 2 && is_held(handover, 0) && !is_held(handover, 1) && !is_held(handover, 2));
    GETS(HAMLYN_HELD, "open to peers", hamlyn_view_pieces(handover, PIECE_BYTES, 1, &at, &error));
    GETS(HAMLYN_HELD, "open to peers", hamlyn_view_pieces(handover, 0, PIECE_BYTES + 1, &at, &error));
    sends(targets[0], "whole", 0, NULL);
    arrives(queue, 10);
    IS(is_held(handover, 1) && !is_held(handover, 2));
    OK(hamlyn_view_pieces(handover, PIECE_BYTES, 5, &at, &error));
    IS(memcmp(at, "whole", 5) == 0);

    /* As long as there is a view, nobody else can have the piece. */
    OK(hamlyn_view_pieces(handover, PIECE_BYTES - 1, 2, &again, &error));
    IS((const char *)again + 1 == (const char *)at && info_of(handover).viewed == 2);
    GETS(HAMLYN_HELD, "hamlyn_end_view", hamlyn_open_pieces(handover, 1, 1, &error));
    GETS(HAMLYN_HELD, "hamlyn_end_view", hamlyn_open_pieces(handover, 0, 1, &error));
    GETS(HAMLYN_HELD, "hamlyn_end_view", hamlyn_close_handover(handover, &error));
    OK(hamlyn_end_view(handover, PIECE_BYTES - 1, 2, &error));
    GETS(HAMLYN_HELD, "hamlyn_end_view", hamlyn_open_pieces(handover, 1, 1, &error));
    OK(hamlyn_end_view(handover, PIECE_BYTES, 5, &error));
    GETS(HAMLYN_HELD, "no view", hamlyn_end_view(handover, PIECE_BYTES, 5, &error));
    OK(hamlyn_open_pieces(handover, 1, 1, &error));
    GETS(HAMLYN_HELD, "open to peers", hamlyn_view_pieces(handover, PIECE_BYTES, 5, &at, &error));

    /* The next message. A message in two pieces is read in one view. */
    sends(targets[1], "halfhalf", PIECE_BYTES - 4, NULL);
    arrives(queue, 11);
    OK(hamlyn_view_pieces(handover, 2 * PIECE_BYTES - 4, 8, &at, &error));
    IS(memcmp(at, "halfhalf", 8) == 0);
    OK(hamlyn_copy_from_area(area, 2 * PIECE_BYTES, copied, 4, &error));
    IS(memcmp(copied, "half", 4) == 0);
    OK(hamlyn_end_view(handover, 2 * PIECE_BYTES - 4, 8, &error));

    /* What is not there. */
    GETS(HAMLYN_INVALID, "lie in the area", hamlyn_open_pieces(handover, PIECES, 1, &error));
    GETS(HAMLYN_INVALID, "lie in the area", hamlyn_open_pieces(handover, 1, UINT32_MAX, &error));
    OK(hamlyn_open_pieces(handover, PIECES, 0, &error));
    uint32_t held;
    GETS(HAMLYN_INVALID, "lie in the area", hamlyn_is_piece_held(handover, PIECES, &held, &error));
    GETS(HAMLYN_INVALID, "lie in the area", hamlyn_view_pieces(handover, PIECES * PIECE_BYTES, 1, &at, &error));
    GETS(HAMLYN_INVALID, "lie in the area", hamlyn_view_pieces(handover, UINT64_MAX, 2, &at, &error));
    GETS(HAMLYN_INVALID, "lie in the area", hamlyn_view_pieces(handover, 0, SIZE_MAX, &at, &error));
    GETS(HAMLYN_INVALID, "lie in the area", hamlyn_end_view(handover, 1, PIECES * PIECE_BYTES, &error));
    OK(hamlyn_view_pieces(handover, PIECES * PIECE_BYTES, 0, &at, &error));
    OK(hamlyn_end_view(handover, PIECES * PIECE_BYTES, 0, &error));

    /* The slot's memory lives as long as the program's end of it. */
    OK(hamlyn_close_slot(slot, &error));
    GETS(HAMLYN_HELD, "handed over", hamlyn_open_slot(there, area, NULL, &second, &error));
    OK(hamlyn_close_area(area, &error));
    OK(hamlyn_view_pieces(handover, 2 * PIECE_BYTES - 4, 8, &at, &error));
    IS(memcmp(at, "halfhalf", 8) == 0);
    OK(hamlyn_end_view(handover, 2 * PIECE_BYTES - 4, 8, &error));
    OK(hamlyn_close_handover(handover, &error));
    OK(hamlyn_close_queue(queue, &error));
    for (int i = 0; i < 2; i++) {
        OK(hamlyn_close_target(targets[i], &error));
    }
}

/* Metadata that lie in an area. */
static void metadata_are_gathered(void) {
    hamlyn_area *area, *destination;
    hamlyn_queue *queue;
    hamlyn_slot *slot;
    hamlyn_slot_options options;
    hamlyn_ticket ticket;
    hamlyn_target *target;
    hamlyn_entry entry;
    hamlyn_piece piece;
    char metadata[HAMLYN_METADATA_BYTES + 1];
    memset(&piece, 0, sizeof piece);
    OK(hamlyn_allocate_area(here, 100, HAMLYN_AREA_PRIVATE, &area, &error));
    OK(hamlyn_copy_to_area(area, 10, "told beside", 11, &error));
    OK(hamlyn_bind_area(terminus, area, 10, 90, &piece.tag, &error));
    piece.length_bytes = 11;
    OK(hamlyn_gather_metadata(terminus, &piece, metadata, 11, &error));
    metadata[11] = 0;
    IS(strcmp(metadata, "told beside") == 0);

    OK(hamlyn_allocate_area(there, 64, HAMLYN_AREA_PRIVATE, &destination, &error));
    OK(hamlyn_open_queue(there, 4, &queue, &error));
    memset(&options, 0, sizeof options);
    options.queue = queue;
    options.entries = 1;
    OK(hamlyn_open_slot(there, destination, &options, &slot, &error));
    OK(hamlyn_set_entry_class(slot, 0, 20, &error));
    OK(hamlyn_entry_ticket(slot, 0, 0, 64, &ticket, &error));
    OK(hamlyn_open_target(terminus, &ticket, MINUTE, &target, &error));
    sends(target, "x", 0, metadata);
    arrives(queue, 20);
    OK(hamlyn_get_entry(slot, 0, &entry, &error));
    IS(entry.metadata_bytes == 11 && memcmp(entry.metadata, "told beside", 11) == 0);

    GETS(HAMLYN_INVALID, "null", hamlyn_gather_metadata(terminus, NULL, metadata, 11, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_gather_metadata(terminus, &piece, NULL, 11, &error));
    GETS(HAMLYN_TOO_LONG, "room", hamlyn_gather_metadata(terminus, &piece, metadata, 10, &error));
    piece.length_bytes = HAMLYN_METADATA_BYTES + 1;
    GETS(HAMLYN_TOO_LONG, "longer", hamlyn_gather_metadata(terminus, &piece, metadata, sizeof metadata, &error));
    piece.length_bytes = 11;
    piece.offset = 80;
    GETS(HAMLYN_INVALID, "area", hamlyn_gather_metadata(terminus, &piece, metadata, sizeof metadata, &error));
    piece.offset = 0;
    OK(hamlyn_unbind_area(terminus, piece.tag, &error));
    GETS(HAMLYN_INVALID, "area", hamlyn_gather_metadata(terminus, &piece, metadata, sizeof metadata, &error));

    OK(hamlyn_close_target(target, &error));
    OK(hamlyn_close_slot(slot, &error));
    OK(hamlyn_close_queue(queue, &error));
    OK(hamlyn_close_area(area, &error));
    OK(hamlyn_close_area(destination, &error));
}

/* A pool is written by its owner in place, and read by those to whom it was shown. */
static void a_pool_is_shown(void) {
    hamlyn_pool *pool, *none;
    hamlyn_shared_pool *shared, *twice;
    hamlyn_chunk first, second, third;
    hamlyn_pool_info info;
    hamlyn_peer peer;
    uint64_t number, length, link;
    size_t peers;
    char found[6] = {0};
    const void *at;
    GETS(HAMLYN_INVALID, "pool", hamlyn_open_pool(0, 4, &none, &error));
    GETS(HAMLYN_INVALID, "pool", hamlyn_open_pool(100, 0, &none, &error));
    GETS(HAMLYN_INVALID, "pool", hamlyn_open_pool(SIZE_MAX, UINT32_MAX, &none, &error));
    OK(hamlyn_open_pool(1000, 2, &pool, &error));
    OK(hamlyn_take_chunk(pool, 5, &first, &error));
    memcpy(first.data, "frame", 5);
    IS(first.length_bytes == 5);
    OK(hamlyn_take_chunk(pool, 1000, &second, &error));
    IS(second.index != first.index && second.offset != first.offset);
    GETS(HAMLYN_TIMED_OUT, "give one back", hamlyn_take_chunk(pool, 1, &third, &error));
    GETS(HAMLYN_TOO_LONG, "1000", hamlyn_take_chunk(pool, 1001, &third, &error));
    OK(hamlyn_give_back_chunk(pool, second.index, &error));
    GETS(HAMLYN_INVALID, "given back", hamlyn_give_back_chunk(pool, second.index, &error));
    GETS(HAMLYN_INVALID, "another pool", hamlyn_give_back_chunk(pool, 2, &error));
    OK(hamlyn_get_pool_info(pool, &info, &error));
    IS(info.chunks == 2 && info.free == 1 && info.chunk_bytes == 1000 && info.length_bytes % 4096 == 0);
    IS(second.offset + 1000 <= info.length_bytes);

    OK(hamlyn_connect(here, "there", MINUTE, &link, &error));
    OK(hamlyn_poll(there, &error));
    OK(hamlyn_peers(there, &peer, 1, &peers, &error));
    IS(peers == 1);
    GETS(HAMLYN_PEER_LOST, "link", hamlyn_show_pool(there, pool, 12345, &number, &error));
    OK(hamlyn_show_pool(there, pool, peer.link, &number, &error));
    GETS(HAMLYN_NOT_FOUND, "not known", hamlyn_fetch_pool(here, 12345, number, 0, &shared, &error));
    GETS(HAMLYN_NOT_FOUND, "", hamlyn_fetch_pool(here, link, number + 1, MINUTE, &shared, &error));
    OK(hamlyn_fetch_pool(here, link, number, MINUTE, &shared, &error));
    GETS(HAMLYN_NOT_FOUND, "", hamlyn_fetch_pool(here, link, number, MINUTE, &twice, &error));
    OK(hamlyn_show_pool(there, pool, peer.link, &number, &error));
    OK(hamlyn_hide_pool(there, number, &error));
    GETS(HAMLYN_NOT_FOUND, "", hamlyn_fetch_pool(here, link, number, MINUTE, &twice, &error));

    OK(hamlyn_shared_pool_bytes(shared, &length, &error));
    IS(length == info.length_bytes);
    OK(hamlyn_read_shared_pool(shared, first.offset, found, 5, &error));
    IS(strcmp(found, "frame") == 0);
    OK(hamlyn_view_shared_pool(shared, first.offset, 5, &at, &error));
    IS(memcmp(at, "frame", 5) == 0);
    /* It sees what comes later, too, and after the owner has gone. */
    memcpy(first.data, "FRAME", 5);
    IS(memcmp(at, "FRAME", 5) == 0);
    GETS(HAMLYN_INVALID, "pool", hamlyn_read_shared_pool(shared, length - 1, found, 2, &error));
    GETS(HAMLYN_INVALID, "pool", hamlyn_read_shared_pool(shared, UINT64_MAX, found, 2, &error));
    GETS(HAMLYN_INVALID, "pool", hamlyn_view_shared_pool(shared, length, 1, &at, &error));
    OK(hamlyn_close_pool(pool, &error));
    OK(hamlyn_read_shared_pool(shared, first.offset, found, 5, &error));
    IS(strcmp(found, "FRAME") == 0);
    OK(hamlyn_close_shared_pool(shared, &error));
}

static void an_area_lies_where_it_is_to(void) {
    hamlyn_area *area, *second;
    hamlyn_window *window;
    hamlyn_window_info info;
    /* A place that nothing else has. */
    void *place = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    IS(place != MAP_FAILED);
    GETS(HAMLYN_TAKEN, "mapped", hamlyn_allocate_area_at(here, 1 << 20, place, &area, &error));
    IS(munmap(place, 1 << 20) == 0);
    OK(hamlyn_allocate_area_at(here, 8192, place, &area, &error));
    OK(hamlyn_open_area_window(area, 0, 8192, &window, &error));
    OK(hamlyn_get_window(window, &info, &error));
    IS(info.data == place);
    OK(hamlyn_copy_to_area(area, 4096, "here", 4, &error));
    IS(memcmp((char *)place + 4096, "here", 4) == 0);
    GETS(HAMLYN_TAKEN, "another address", hamlyn_allocate_area_at(here, 4096, (char *)place + 4096, &second, &error));
    GETS(HAMLYN_INVALID, "multiple", hamlyn_allocate_area_at(here, 4096, (char *)place + 1, &second, &error));
    GETS(HAMLYN_INVALID, "bytes", hamlyn_allocate_area_at(here, 0, (char *)place + 65536, &second, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_allocate_area_at(here, 4096, NULL, &second, &error));
    OK(hamlyn_close_window(window, &error));
    OK(hamlyn_close_area(area, &error));
}

int main(void) {
    OK(hamlyn_open("here", &here, &error));
    OK(hamlyn_open("there", &there, &error));
    OK(hamlyn_open_terminus(here, 0, 0, 0, &terminus, &error));
    an_area_changes_hands();
    metadata_are_gathered();
    a_pool_is_shown();
    an_area_lies_where_it_is_to();
    OK(hamlyn_close_terminus(terminus, &error));
    OK(hamlyn_close(here, &error));
    OK(hamlyn_close(there, &error));
    puts("passed");
    return 0;
}
