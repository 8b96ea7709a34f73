/* A program as it was written for the implementation of 1996: its header, types, numbers and forms. */
#include "am1996.h"
#include "check.h"

#undef GOOD
#define GOOD(call) EQUAL(call, 0)

static eb_t bundle;
static ea_t one, other;
static char segment[4096];
static int requests, mediums, longs, got, replies, errors, status_seen;
static op_t opcode_seen;

static void on_request(void *token, int a, int b, int c, int d) {
    tag_t tag;
    ea_t at;
    requests++;
    EQUAL(a + b + c + d, 10);
    GOOD(AM_GetMsgTag(token, &tag));
    EQUAL(tag, 2);
    GOOD(AM_GetDestEndpoint(token, &at));
    EQUAL(at == other, 1);
    GOOD(AM_Reply4(token, 2, a, b, c, d));
}
static void on_reply(void *token, int a, int b, int c, int d) {
    (void)token;
    EQUAL(a + b + c + d, 10);
    replies++;
}
static void on_medium(void *token, void *buf, int nbytes, int a, int b, int c, int d, int e, int f, int g, int h) {
    (void)token;
    EQUAL(nbytes, 6);
    EQUAL(memcmp(buf, "medium", 6), 0);
    EQUAL(a + b + c + d + e + f + g + h, 36);
    mediums++;
}
static void on_long(void *token, int dest_offset, int nbytes, int a, int b, int c, int d) {
    (void)token;
    EQUAL(dest_offset, 100);
    EQUAL(nbytes, 5);
    EQUAL(memcmp(segment + 100, "bulk!", 5), 0);
    EQUAL(a + b + c + d, 10);
    longs++;
}
static void on_get(void *token, int dest_offset, int nbytes, int a, int b, int c, int d) {
    (void)token, (void)a, (void)b, (void)c, (void)d;
    EQUAL(dest_offset, 200);
    EQUAL(nbytes, 5);
    got++;
}
static void on_error(int status, op_t opcode, void *argblock) {
    (void)argblock;
    errors++;
    status_seen = status;
    opcode_seen = opcode;
}

int main(void) {
    static char own[4096];
    en_t name;
    int number;
    void *place;
    EQUAL(AM_Poll(bundle), AM_ERR_NOT_INIT);
    GOOD(AM_Init());
    GOOD(AM_AllocateBundle(AM_SEQ, &bundle));
    EQUAL(AM_AllocateBundle(AM_PAR, &bundle), AM_ERR_RESOURCE);
    GOOD(AM_AllocateEndpoint(bundle, &one));
    GOOD(AM_AllocateEndpoint(bundle, &other));
    GOOD(AM1996_GetName(other, &name));
    GOOD(AM_SetTag(one, 1)); /* AM_ALL of later is a tag as any other here */
    GOOD(AM_SetTag(other, 2));
    GOOD(AM_SetSeg(other, segment, sizeof segment));
    GOOD(AM_SetSeg(one, own, sizeof own));
    EQUAL(AM_SetSeg(one, own, -1), AM_ERR_BAD_ARG);
    GOOD(AM_GetSeg(one, &place, &number));
    EQUAL(place == own && number == (int)sizeof own, 1);
    GOOD(AM_SetHandler(other, 1, on_request));
    GOOD(AM_SetHandler(other, 3, on_medium));
    GOOD(AM_SetHandler(other, 4, on_long));
    GOOD(AM_SetHandler(one, 2, on_reply));
    GOOD(AM_SetHandler(one, 5, on_get));
    GOOD(AM_SetHandler(one, 0, on_error));
    GOOD(AM_Map(one, 0, name, 2));
    EQUAL(AM_Map(one, 0, name, 2), AM_ERR_IN_USE);
    EQUAL(AM_Request4(one, 9, 1, 1, 2, 3, 4), AM_ERR_BAD_ARG);
    /* Without a mask it returns at once. */
    GOOD(AM_Wait(bundle));
    EQUAL(AM_GetEventMask(bundle), AM_NOEVENTS);
    GOOD(AM_SetEventMask(bundle, AM_NOTEMPTY));
    EQUAL(AM_GetEventMask(bundle), AM_NOTEMPTY);
    GOOD(AM_Request4(one, 0, 1, 1, 2, 3, 4));
    while (!replies) GOOD(AM_WaitSema(bundle));
    GOOD(AM_RequestMedium8(one, 0, 3, "medium", 6, 1, 2, 3, 4, 5, 6, 7, 8));
    GOOD(AM_RequestLong4(one, 0, 100, 4, "bulk!", 5, 1, 2, 3, 4));
    while (!longs || !mediums) GOOD(AM_Wait(bundle));
    GOOD(AM_GetXferAsynch4(one, 0, 100, 5, 200, 5, 1, 2, 3, 4));
    while (!got) GOOD(AM_Wait(bundle));
    EQUAL(memcmp(own + 200, "bulk!", 5), 0);
    /* Messages that come back have the numbers of 1996. */
    GOOD(AM_Request8(one, 0, 77, 1, 2, 3, 4, 5, 6, 7, 8));
    while (errors < 1) GOOD(AM_Wait(bundle));
    EQUAL(status_seen, EBADHANDLER);
    EQUAL(opcode_seen, AM_REQUEST_8);
    GOOD(AM_RequestXfer4(one, 0, (int)sizeof segment - 1, 4, "bulk!", 5, 1, 2, 3, 4));
    while (errors < 2) GOOD(AM_Wait(bundle));
    EQUAL(status_seen, EBADLENGTH);
    EQUAL(opcode_seen, AM_REQUEST_LONG_4);
    GOOD(AM_SetTag(other, AM_ALL));
    GOOD(AM_Map(one, 1, name, 99));
    GOOD(AM_RequestI8(one, 1, 3, "medium", 6, 1, 2, 3, 4, 5, 6, 7, 8));
    while (mediums < 2) GOOD(AM_Wait(bundle));
    GOOD(AM_Unmap(one, 1));
    GOOD(AM_FreeEndpoint(one));
    GOOD(AM_FreeBundle(bundle));
    GOOD(AM_Terminate());
    EQUAL(requests, 1);
    puts("passed");
    return 0;
}
