// Bundles, events, endpoints that move with traffic under way, addresses of functions, tags and translations that change: in C++.
#include <vector>

#include "am.h"
#include "check.h"

namespace {

eb_t first, second;
ep_t mover, sender;
en_t mover_name, sender_name;
int taken[2], answered, returned_count, last_status;
int at_bundle;

void request(void *token, int number) {
    taken[at_bundle]++;
    tag_t tag = 0;
    GOOD(AM_GetMsgTag(token, &tag));
    EQUAL(tag, 6);
    GOOD(AM_Reply1(token, 2, number));
}
void answer(void *, int) { answered++; }
void returned(int status, op_t, void *) {
    returned_count++;
    last_status = status;
}
void any(void *token) {
    tag_t tag;
    GIVES(AM_GetMsgTag(token, &tag), AM_ERR_RESOURCE, "AM_ALL");
    answered++;
}
void hold(void *, void *buf, size_t nbytes) {
    EQUAL(nbytes, 5);
    EQUAL(memcmp(buf, "hello", 5), 0);
    answered++;
}

void poll(int number) {
    at_bundle = number;
    GOOD(AM_Poll(number ? second : first));
}

// Each form is a function, whose address a table may have.
struct Forms {
    int (*request)(ep_t, int, handler_t, int);
    int (*medium)(ep_t, int, handler_t, const void *, size_t, int);
    int (*bulk)(ep_t, int, uintptr_t, handler_t, const void *, size_t, int);
    int (*bulk_async)(ep_t, int, uintptr_t, handler_t, const void *, size_t, int);
    int (*get)(ep_t, int, uintptr_t, handler_t, uintptr_t, size_t, int);
    int (*reply)(void *, handler_t, int);
    int (*init)();
    int (*poll)(eb_t);
};
const Forms forms = {AM_Request1, AM_RequestI1, AM_RequestXfer1, AM_RequestXferAsync1, AM_GetXfer1, AM_Reply1, AM_Init, AM_Poll};

void set_up() {
    GOOD(forms.init());
    GOOD(AM_AllocateBundle(AM_SEQ, &first));
    GOOD(AM_AllocateBundle(AM_SEQ, &second));
    GOOD(AM_AllocateEndpoint(first, &mover, &mover_name));
    GOOD(AM_AllocateEndpoint(first, &sender, &sender_name));
    GOOD(AM_SetTag(mover, 6));
    GOOD(AM_SetTag(sender, 7));
    GOOD(AM_SetHandler(mover, 1, request));
    GOOD(AM_SetHandler(sender, 2, answer));
    GOOD(AM_SetHandler(sender, 0, returned));
    handler_t number = 0;
    GOOD(AM_SetHandlerAny(mover, &number, hold));
    EQUAL(number, 2);
    GOOD(AM_Map(sender, 0, mover_name, 6));
}

void drain() {
    int outstanding = 1;
    for (int looks = 0; outstanding; looks++) {
        EQUAL(looks < 100000000, 1);
        poll(0), poll(1);
        GOOD(AMX_GetOutstanding(sender, &outstanding));
    }
}

// 4,000 requests while the destination moves: each is taken once, where it is at that time.
void moves() {
    int sent = 0, where = 0;
    for (int round = 0; round < 1000; round++) {
        for (int burst = 0; burst < 4; burst++, sent++) GOOD(forms.request(sender, 0, 1, sent));
        if (round % 3 == 0) {
            GOOD(AM_MoveEndpoint(mover, where ? second : first, where ? first : second));
            where = !where;
            GIVES(AM_MoveEndpoint(mover, where ? first : second, first), AM_ERR_RESOURCE, "not in the bundle");
            en_t name;
            GOOD(AMX_GetEndpointName(mover, &name));
            EQUAL(AMX_enEqual(name, mover_name), 1);
        }
        int before = taken[!where];
        poll(!where);
        // The other bundle has nothing of it.
        EQUAL(taken[!where], before);
        poll(where);
        if (round % 7 == 0) drain();
    }
    drain();
    EQUAL(taken[0] + taken[1], sent);
    EQUAL(taken[0] > 100 && taken[1] > 100, 1);
    EQUAL(answered, sent);
    EQUAL(returned_count, 0);
}

// The requester moves while it has requests outstanding: their answers come to it where it is.
void requester_moves() {
    answered = 0;
    GOOD(AM_Request1(sender, 0, 1, 0));
    GOOD(AM_MoveEndpoint(sender, first, second));
    for (int looks = 0; answered == 0; looks++) {
        EQUAL(looks < 1000000, 1);
        poll(0);
        poll(1);
    }
    // Replies of another bundle wait for their own.
    GOOD(AM_Request1(sender, 0, 1, 0));
    for (int looks = 0; looks < 1000; looks++) poll(0);
    EQUAL(answered, 1);
    poll(1), poll(1);
    drain();
    EQUAL(answered, 2);
    GOOD(AM_MoveEndpoint(sender, second, first));
}

void events() {
    int mask = -1;
    GOOD(AM_GetEventMask(first, &mask));
    EQUAL(mask, AM_NOEVENTS);
    GOOD(AM_SetEventMask(first, AM_NOTEMPTY | AM_CANSEND));
    // Something can be sent: no wait.
    GOOD(AM_WaitSema(first));
    GOOD(AM_SetEventMask(first, AM_NOTEMPTY));
    GIVES(AMX_WaitSemaFor(first, 10), AM_ERR_NOT_SENT, "in time");
    answered = 0;
    GOOD(AM_RequestI0(sender, 0, 2, "hello", 5));
    EQUAL(AM_GetTranslationInuse(sender, 0), AM_OK);
    for (int looks = 0; answered == 0; looks++) {
        EQUAL(looks < 100000, 1);
        poll(0), poll(1);
    }
    GOOD(AM_GetEventMask(first, &mask));
    EQUAL(mask, AM_NOTEMPTY);
}

// Tags and translations at any time.
void changes() {
    GOOD(AM_SetTag(mover, 8));
    GOOD(AM_Request1(sender, 0, 1, 0));
    drain();
    for (int looks = 0; returned_count == 0 && looks < 1000; looks++) poll(0);
    EQUAL(returned_count, 1);
    EQUAL(last_status, EBADTAG);
    GOOD(AM_SetTag(mover, AM_ALL));
    GOOD(AM_SetHandler(mover, 3, any));
    answered = 0;
    // Any tag will do; the one that maps AM_ALL itself, too.
    GOOD(AMX_SetTranslationTag(sender, 0, 1234567));
    GOOD(AM_Request0(sender, 0, 3));
    int other = -1;
    GOOD(AM_MapAny(sender, &other, mover_name, AM_ALL));
    EQUAL(other, 1);
    GOOD(AM_Request0(sender, other, 3));
    drain();
    EQUAL(answered, 2);
    // Unmapped with a request outstanding, which ends as it would have.
    GOOD(AM_Request0(sender, other, 3));
    GOOD(AM_UnMap(sender, other));
    GOOD(AM_MapAny(sender, &other, mover_name, 5));
    GOOD(AM_Request0(sender, other, 3));
    drain();
    EQUAL(answered, 4);
    EQUAL(returned_count, 1);
}

// More endpoints than frames (HAMLYN_AM_FRAMES): all are reached.
void many() {
    std::vector<ep_t> endpoints(100);
    for (size_t at = 0; at < endpoints.size(); at++) {
        en_t name;
        GOOD(AM_AllocateEndpoint(second, &endpoints[at], &name));
        GOOD(AM_SetTag(endpoints[at], AM_ALL));
        GOOD(AM_SetHandler(endpoints[at], 3, any));
        GOOD(AM_Map(sender, static_cast<int>(at) + 10, name, 99));
    }
    answered = 0;
    for (int round = 0; round < 3; round++)
        for (size_t at = 0; at < endpoints.size(); at++) {
            GOOD(AM_Request0(sender, static_cast<int>(at) + 10, 3));
            poll(1);
            // A request that waits polls its own bundle alone, so the others must be able to end.
            if (at % 16 == 15) drain();
        }
    drain();
    EQUAL(answered, 300);
    for (ep_t endpoint : endpoints) GOOD(AM_FreeEndpoint(endpoint));
}

}  // namespace

int main() {
    set_up();
    moves();
    requester_moves();
    events();
    changes();
    many();
    GOOD(AM_FreeBundle(first));
    GOOD(AM_FreeBundle(second));
    GOOD(AM_Terminate());
    puts("passed");
}
