/* Lanes and shared lanes of one program: credit, buffers that are held and given back in any order, messages that are kept, shares of peers, and
   arguments that are refused. */
#include "checks.h"

#include <stdlib.h>

static char long_text[8192];

static int is_text(const hamlyn_lane_message *message, const char *text) {
    return message->length_bytes == strlen(text) && memcmp(message->data, text, strlen(text)) == 0;
}

static void lanes(hamlyn_manager *manager) {
    hamlyn_lane_options options = {3, 64};
    hamlyn_lane *lane;
    hamlyn_lane_sender *sender;
    hamlyn_lane_seed seed;
    hamlyn_lane_sender_info info;
    hamlyn_lane_message messages[3], more;
    hamlyn_peer peer;
    uint32_t buffer, is_free;
    GETS(HAMLYN_INVALID, "null", hamlyn_open_lane(manager, &options, NULL, &error));
    options.buffers = 70000;
    GETS(HAMLYN_INVALID, "4,096", hamlyn_open_lane(manager, &options, &lane, &error));
    options.buffers = 5000;
    GETS(HAMLYN_INVALID, "4,096", hamlyn_open_lane(manager, &options, &lane, &error));
    options.buffers = 3;
    OK(hamlyn_open_lane(manager, &options, &lane, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_get_lane_seed(lane, NULL, &error));
    OK(hamlyn_get_lane_seed(lane, &seed, &error));
    for (size_t at = HAMLYN_LANE_SEED_USED_BYTES; at < HAMLYN_LANE_SEED_LENGTH_BYTES; at++) {
        IS(seed.bytes[at] == 0);
    }
    GETS(HAMLYN_TIMED_OUT, "nothing came", hamlyn_recv_lane(lane, HAMLYN_POLL, &more, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_recv_lane(lane, HAMLYN_POLL, NULL, &error));
    GETS(HAMLYN_HELD, "no message is held", hamlyn_give_back_lane(lane, 0, &error));

    GETS(HAMLYN_INVALID, "null", hamlyn_connect_lane(manager, NULL, MINUTE, &sender, &error));
    hamlyn_lane_seed damaged = seed;
    damaged.bytes[3] ^= 1;
    GETS(HAMLYN_INVALID, "", hamlyn_connect_lane(manager, &damaged, MINUTE, &sender, &error));
    OK(hamlyn_connect_lane(manager, &seed, MINUTE, &sender, &error));
    OK(hamlyn_get_lane_sender_info(sender, &info, &error));
    IS(info.buffers == 3 && info.buffer_bytes == 64 && info.credits == 3);
    GETS(HAMLYN_TOO_LONG, "65", hamlyn_send_lane(sender, 1, long_text, 65, HAMLYN_POLL, NULL, &error));
    GETS(HAMLYN_INVALID, "null", hamlyn_send_lane(sender, 1, NULL, 1, HAMLYN_POLL, NULL, &error));
    OK(hamlyn_send_lane(sender, UINT32_MAX, "first", 5, MINUTE, &buffer, &error));
    IS(buffer == 0);
    OK(hamlyn_send_lane_to(sender, 2, 7, "second", 6, MINUTE, &error));
    OK(hamlyn_send_lane(sender, 8, NULL, 0, MINUTE, NULL, &error));
    /* All are filled. */
    GETS(HAMLYN_TIMED_OUT, "no room", hamlyn_send_lane(sender, 9, "x", 1, HAMLYN_POLL, NULL, &error));
    GETS(HAMLYN_TIMED_OUT, "no room", hamlyn_send_lane_to(sender, 1, 9, "x", 1, 1000000, &error));
    GETS(HAMLYN_TIMED_OUT, "no room", hamlyn_send_lane_kept(sender, 9, "x", 1, 1000000, NULL, &error));
    GETS(HAMLYN_INVALID, "0 to 2", hamlyn_send_lane_to(sender, 3, 9, "x", 1, MINUTE, &error));
    GETS(HAMLYN_INVALID, "not 65536", hamlyn_is_lane_buffer_free(sender, 65536, &is_free, &error));
    for (int turn = 0; turn < 3; turn++) {
        OK(hamlyn_recv_lane(lane, MINUTE, &messages[turn], &error));
    }
    IS(is_text(&messages[0], "first") && messages[0].tag == UINT32_MAX && messages[0].buffer == 0);
    IS(is_text(&messages[1], "second") && messages[1].tag == 7 && messages[1].buffer == 2);
    IS(is_text(&messages[2], "") && messages[2].tag == 8 && messages[2].buffer == 1);
    OK(hamlyn_link_peer(manager, messages[0].link, &peer, &error));
    IS(peer.process == (uint32_t)getpid());
    /* The one that is given back can be filled again, and the others stay as they are. */
    OK(hamlyn_give_back_lane(lane, 2, &error));
    GETS(HAMLYN_HELD, "no message is held", hamlyn_give_back_lane(lane, 2, &error));
    GETS(HAMLYN_HELD, "no message is held", hamlyn_give_back_lane(lane, 3, &error));
    OK(hamlyn_send_lane_kept(sender, 10, "third", 5, MINUTE, &buffer, &error));
    IS(buffer == 2 && is_text(&messages[0], "first"));
    OK(hamlyn_is_lane_buffer_free(sender, 2, &is_free, &error));
    IS(!is_free);
    OK(hamlyn_recv_lane(lane, MINUTE, &messages[1], &error));
    IS(is_text(&messages[1], "third"));
    OK(hamlyn_give_back_lane(lane, 0, &error));
    OK(hamlyn_give_back_lane(lane, 2, &error));
    OK(hamlyn_poll(manager, &error));
    OK(hamlyn_is_lane_buffer_free(sender, 2, &is_free, &error));
    IS(is_free);
    /* Credit came for the third, but not for these. */
    OK(hamlyn_send_lane_kept(sender, 11, "fourth", 6, MINUTE, NULL, &error));
    OK(hamlyn_send_lane_kept(sender, 12, "fifth", 5, MINUTE, NULL, &error));
    OK(hamlyn_fence_link(manager, info.link, MINUTE, &error));
    OK(hamlyn_close_lane(lane, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_recv_lane(lane, HAMLYN_POLL, &more, &error));
    OK(hamlyn_fence_link(manager, info.link, MINUTE, &error));
    GETS(HAMLYN_FINISHED, "", hamlyn_send_lane(sender, 13, "x", 1, HAMLYN_POLL, NULL, &error));
    OK(hamlyn_next_kept(sender, &more, &error));
    IS(is_text(&more, "fourth") && more.tag == 11 && more.link == info.link);
    OK(hamlyn_next_kept(sender, &more, &error));
    IS(is_text(&more, "fifth") && more.tag == 12);
    GETS(HAMLYN_NOT_FOUND, "credit", hamlyn_next_kept(sender, &more, &error));
    OK(hamlyn_close_lane_sender(sender, &error));
    OK(hamlyn_close_lane_sender(NULL, &error));
    OK(hamlyn_close_lane(NULL, &error));

    /* The end of a sender. */
    OK(hamlyn_open_lane(manager, NULL, &lane, &error));
    OK(hamlyn_get_lane_seed(lane, &seed, &error));
    OK(hamlyn_connect_lane(manager, &seed, MINUTE, &sender, &error));
    OK(hamlyn_get_lane_sender_info(sender, &info, &error));
    IS(info.buffers == 16 && info.buffer_bytes == 4096);
    OK(hamlyn_send_lane(sender, 1, "last", 4, MINUTE, NULL, &error));
    OK(hamlyn_close_lane_sender(sender, &error));
    OK(hamlyn_recv_lane(lane, MINUTE, &more, &error));
    IS(is_text(&more, "last"));
    OK(hamlyn_give_back_lane(lane, more.buffer, &error));
    GETS(HAMLYN_FINISHED, "", hamlyn_recv_lane(lane, MINUTE, &more, &error));
    GETS(HAMLYN_BAD_HANDLE, "another kind", hamlyn_recv_lane((hamlyn_lane *)manager, HAMLYN_POLL, &more, &error));
    OK(hamlyn_close_lane(lane, &error));
}

static void shared_lanes(hamlyn_manager *manager, hamlyn_manager *other) {
    hamlyn_shared_lane_options options = {0};
    hamlyn_shared_lane *lane, *none;
    hamlyn_shared_lane_info info;
    hamlyn_lane_message messages[2], more;
    hamlyn_completion_queue *completions;
    hamlyn_terminus *terminus;
    hamlyn_target *target;
    hamlyn_ticket ticket;
    hamlyn_peer peer;
    uint64_t count, link;
    size_t ready;
    options.tags = 70000;
    GETS(HAMLYN_INVALID, "4,096 tags", hamlyn_open_shared_lane(manager, &options, &lane, &error));
    options.tags = 4097;
    GETS(HAMLYN_INVALID, "4097", hamlyn_open_shared_lane(manager, &options, &lane, &error));
    options.tags = 10;
    options.buffers = 2;
    options.buffer_bytes = 64;
    options.queue_bytes = 64 * 8;
    options.peer_bytes = 64 * 2;
    OK(hamlyn_open_shared_lane(manager, &options, &lane, &error));
    OK(hamlyn_open_shared_lane(manager, NULL, &none, &error));
    GETS(HAMLYN_TIMED_OUT, "nothing came", hamlyn_recv_shared_lane(lane, HAMLYN_POLL, &more, &error));
    GETS(HAMLYN_HELD, "no message is held", hamlyn_give_back_shared_lane(lane, 0, &error));
    OK(hamlyn_open_completions(manager, 1, &completions, &error));
    hamlyn_source sources[] = {{HAMLYN_SOURCE_COMPLETIONS, completions}, {HAMLYN_SOURCE_SHARED_LANE, lane}};
    GETS(HAMLYN_TIMED_OUT, "nothing came", hamlyn_await_any(manager, sources, 2, 1000000, &ready, &error));

    OK(hamlyn_shared_lane_ticket(lane, &ticket, &error));
    OK(hamlyn_open_terminus(other, 0, 0, 0, &terminus, &error));
    OK(hamlyn_open_target(terminus, &ticket, MINUTE, &target, &error));
    OK(hamlyn_target_link(target, &link, &error));
    hamlyn_outgoing_message message;
    memset(&message, 0, sizeof message);
    message.data = "one";
    message.length_bytes = 3;
    message.word = 9;
    OK(hamlyn_send_msg(target, &message, MINUTE, NULL, &error));
    OK(hamlyn_await_any(manager, sources, 2, MINUTE, &ready, &error));
    IS(ready == 1);
    OK(hamlyn_recv_shared_lane(lane, HAMLYN_POLL, &messages[0], &error));
    message.data = "two";
    message.word = 8;
    OK(hamlyn_send_msg(target, &message, MINUTE, NULL, &error));
    OK(hamlyn_recv_shared_lane(lane, MINUTE, &messages[1], &error));
    IS(is_text(&messages[0], "one") && messages[0].tag == 9);
    IS(is_text(&messages[1], "two") && messages[1].tag == 8);
    OK(hamlyn_link_peer(manager, messages[1].link, &peer, &error));
    IS(peer.process == (uint32_t)getpid());
    /* The program has all buffers: what comes now waits, up to the share of its sender. The first waited, too, for hamlyn_await_any. */
    for (int turn = 0; turn < 3; turn++) {
        OK(hamlyn_send_msg(target, &message, MINUTE, NULL, &error));
        OK(hamlyn_poll(manager, &error));
    }
    GETS(HAMLYN_TIMED_OUT, "nothing came", hamlyn_recv_shared_lane(lane, MINUTE, &more, &error));
    OK(hamlyn_get_shared_lane_info(lane, &info, &error));
    IS(info.taken == 2 && info.waiting == 2 && info.queued == 3 && info.refusals == 1 && info.too_long == 0);
    IS(info.waiting_bytes == 64 * 2 && info.queue_bytes == 64 * 8);
    OK(hamlyn_shared_lane_refusals(lane, HAMLYN_REFUSED_QUEUE_FULL, &count, &error));
    IS(count == 1);
    GETS(HAMLYN_NOT_FOUND, "no refusal", hamlyn_shared_lane_refusals(lane, 27, &count, &error));
    OK(hamlyn_give_back_shared_lane(lane, messages[0].buffer, &error));
    GETS(HAMLYN_HELD, "no message is held", hamlyn_give_back_shared_lane(lane, messages[0].buffer, &error));
    OK(hamlyn_recv_shared_lane(lane, HAMLYN_POLL, &more, &error));
    IS(is_text(&more, "two") && is_text(&messages[1], "two") && more.buffer != messages[1].buffer);
    /* There is no such tag, and no such length. */
    message.word = 10;
    OK(hamlyn_send_msg(target, &message, MINUTE, NULL, &error));
    OK(hamlyn_poll(manager, &error));
    OK(hamlyn_shared_lane_refusals(lane, HAMLYN_REFUSED_NO_SUCH_HANDLER, &count, &error));
    IS(count == 1);
    message.data = long_text;
    message.length_bytes = 65;
    message.word = 1;
    GETS(HAMLYN_TOO_LONG, "", hamlyn_send_msg(target, &message, MINUTE, NULL, &error));
    /* A source of another manager, and one that is none. */
    GETS(HAMLYN_INVALID, "another manager's", hamlyn_await_any(other, sources, 2, 0, &ready, &error));
    sources[0].kind = 3;
    GETS(HAMLYN_INVALID, "none of", hamlyn_await_any(manager, sources, 2, 0, &ready, &error));
    OK(hamlyn_close_shared_lane(lane, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_recv_shared_lane(lane, HAMLYN_POLL, &more, &error));
    OK(hamlyn_close_shared_lane(none, &error));
    OK(hamlyn_close_shared_lane(NULL, &error));
    OK(hamlyn_close_target(target, &error));
    OK(hamlyn_close_terminus(terminus, &error));
    OK(hamlyn_close_completions(completions, &error));
}

/* Between two programs: many messages over few buffers, so each waits for credit. */

enum { MESSAGES = 1000 };

static void offer(hamlyn_manager *manager, const char *item, const void *data, size_t length) {
    OK(hamlyn_offer(manager, item, HAMLYN_OFFER_ALWAYS, data, length, &error));
}

static void ask_for(hamlyn_manager *manager, const char *item, void *into, size_t length) {
    unsigned char answer[HAMLYN_OFFER_BYTES_MAX];
    size_t found;
    OK(hamlyn_ask(manager, "lanes-serve", item, MINUTE, answer, sizeof answer, &found, &error));
    IS(found == length);
    memcpy(into, answer, length);
}

static void serve(hamlyn_manager *manager) {
    hamlyn_lane_options options = {4, 256};
    hamlyn_lane *lane;
    hamlyn_lane_seed seed;
    hamlyn_shared_lane *shared;
    hamlyn_ticket ticket;
    hamlyn_lane_message message;
    uint64_t link = 0;
    OK(hamlyn_open_lane(manager, &options, &lane, &error));
    OK(hamlyn_get_lane_seed(lane, &seed, &error));
    offer(manager, "seed", &seed, sizeof seed);
    OK(hamlyn_open_shared_lane(manager, NULL, &shared, &error));
    OK(hamlyn_shared_lane_ticket(shared, &ticket, &error));
    offer(manager, "ticket", &ticket, sizeof ticket);
    for (uint32_t turn = 0; turn < MESSAGES; turn++) {
        OK(hamlyn_recv_lane(lane, MINUTE, &message, &error));
        IS(message.tag == turn && message.length_bytes == turn % 257);
        for (size_t at = 0; at < message.length_bytes; at++) {
            IS(((const unsigned char *)message.data)[at] == (unsigned char)turn);
        }
        link = message.link;
        OK(hamlyn_give_back_lane(lane, message.buffer, &error));
    }
    GETS(HAMLYN_FINISHED, "", hamlyn_recv_lane(lane, MINUTE, &message, &error));
    for (uint32_t turn = 0; turn < MESSAGES; turn++) {
        OK(hamlyn_recv_shared_lane(shared, MINUTE, &message, &error));
        IS(message.tag == turn && message.link == link && message.length_bytes == sizeof turn);
        IS(memcmp(message.data, &turn, sizeof turn) == 0);
        OK(hamlyn_give_back_shared_lane(shared, message.buffer, &error));
    }
    OK(hamlyn_close_shared_lane(shared, &error));
    OK(hamlyn_close_lane(lane, &error));
    /* Until the other has its answers. */
    while (hamlyn_check_link(manager, link, &error) == HAMLYN_OK) {
        OK(hamlyn_wait(manager, MINUTE, &error));
    }
}

static void ask(hamlyn_manager *manager) {
    static unsigned char data[256];
    hamlyn_lane_seed seed;
    hamlyn_lane_sender *sender;
    hamlyn_ticket ticket;
    hamlyn_terminus *terminus;
    hamlyn_target *target;
    hamlyn_outgoing_message message;
    uint64_t link;
    ask_for(manager, "seed", &seed, sizeof seed);
    OK(hamlyn_connect_lane(manager, &seed, MINUTE, &sender, &error));
    for (uint32_t turn = 0; turn < MESSAGES; turn++) {
        memset(data, (int)turn, sizeof data);
        OK(hamlyn_send_lane(sender, turn, data, turn % 257, MINUTE, NULL, &error));
    }
    OK(hamlyn_close_lane_sender(sender, &error));
    ask_for(manager, "ticket", &ticket, sizeof ticket);
    OK(hamlyn_open_terminus(manager, 0, 0, 0, &terminus, &error));
    OK(hamlyn_open_target(terminus, &ticket, MINUTE, &target, &error));
    OK(hamlyn_target_link(target, &link, &error));
    for (uint32_t turn = 0; turn < MESSAGES; turn++) {
        memset(&message, 0, sizeof message);
        message.data = &turn;
        message.length_bytes = sizeof turn;
        message.word = turn;
        OK(hamlyn_send_msg(target, &message, MINUTE, NULL, &error));
    }
    OK(hamlyn_fence_link(manager, link, MINUTE, &error));
    OK(hamlyn_close_target(target, &error));
    OK(hamlyn_close_terminus(terminus, &error));
}

int main(int count, char **arguments) {
    hamlyn_manager *manager, *other;
    if (count == 3) {
        char name[32];
        hamlyn_options options;
        snprintf(name, sizeof name, "lanes-%s", arguments[1]);
        who = arguments[1];
        OK(hamlyn_default_options(&options, &error));
        options.name = name;
        options.strategy = (uint32_t)atoi(arguments[2]);
        OK(hamlyn_open_with(&options, &manager, &error));
        if (strcmp(arguments[1], "serve") == 0) {
            serve(manager);
        } else {
            ask(manager);
        }
        OK(hamlyn_close(manager, &error));
        puts("passed");
        return 0;
    }
    OK(hamlyn_open("lanes", &manager, &error));
    OK(hamlyn_open("lanes-other", &other, &error));
    lanes(manager);
    shared_lanes(manager, other);
    OK(hamlyn_close(other, &error));
    OK(hamlyn_close(manager, &error));
    puts("passed");
    return 0;
}
