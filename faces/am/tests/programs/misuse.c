/* Misuse is an error code with a text, and never a crash. The first argument says which. */
#include <pthread.h>
#include <sys/wait.h>

#include "am.h"
#include "check.h"

static eb_t eb;
static ep_t ep;
static en_t name;
static void *stale;
static void *kept;
static int ran;

static void nothing(void *token) { (void)token; }

/* All that a handler may not do. */
static void wrong(void *token, int a) {
    eb_t bundle;
    ep_t endpoint;
    en_t source;
    tag_t tag;
    int number;
    const char *words = "handler is running";
    GIVES(AM_Poll(eb), AM_ERR_RESOURCE, words);
    GIVES(AM_WaitSema(eb), AM_ERR_RESOURCE, words);
    GIVES(AM_Request0(ep, 0, 1), AM_ERR_RESOURCE, words);
    GIVES(AM_RequestI0(ep, 0, 1, "x", 1), AM_ERR_RESOURCE, words);
    GIVES(AM_RequestXferAsync0(ep, 0, 0, 1, "x", 1), AM_ERR_RESOURCE, words);
    GIVES(AM_GetXfer0(ep, 0, 0, 1, 0, 1), AM_ERR_RESOURCE, words);
    GIVES(AM_AllocateBundle(AM_SEQ, &bundle), AM_ERR_RESOURCE, words);
    GIVES(AM_AllocateEndpoint(eb, &endpoint, NULL), AM_ERR_RESOURCE, words);
    GIVES(AM_FreeEndpoint(ep), AM_ERR_RESOURCE, words);
    GIVES(AM_FreeBundle(eb), AM_ERR_RESOURCE, words);
    GIVES(AM_MoveEndpoint(ep, eb, eb), AM_ERR_RESOURCE, words);
    GIVES(AM_SetTag(ep, 9), AM_ERR_RESOURCE, words);
    GIVES(AM_SetHandler(ep, 9, nothing), AM_ERR_RESOURCE, words);
    GIVES(AM_UnMap(ep, 0), AM_ERR_RESOURCE, words);
    GIVES(AM_Terminate(), AM_ERR_RESOURCE, words);
    /* It may ask. */
    GOOD(AM_GetTag(ep, &tag));
    GOOD(AM_GetTranslationName(ep, 0, &source));
    GOOD(AM_GetSourceEndpoint(token, &source));
    EQUAL(AMX_enEqual(source, name), 1);
    GOOD(AMX_GetSourceId(token, &number));
    EQUAL(number, 0);
    GOOD(AM_GetDestEndpoint(token, &endpoint));
    EQUAL(endpoint == ep, 1);
    GOOD(AM_GetMsgTag(token, &tag));
    EQUAL(tag, 5);
    GIVES(AM_GetDestEndpoint(NULL, &endpoint), AM_ERR_BAD_ARG, "null");
    GIVES(AM_GetDestEndpoint(token, NULL), AM_ERR_BAD_ARG, "null");
    GIVES(AM_GetDestEndpoint(ep, &endpoint), AM_ERR_RESOURCE, "token");
    AMX_returned_t returned;
    GIVES(AMX_GetReturned(token, &returned), AM_ERR_RESOURCE, "came back");
    /* Replies that cannot be do not use the reply up. */
    GIVES(AM_Reply0(token, 0), AM_ERR_BAD_ARG, "handler 0");
    GIVES(AM_ReplyI0(token, 2, NULL, 5), AM_ERR_BAD_ARG, "null");
    GIVES(AM_ReplyI0(token, 2, name.words, 65001), AM_ERR_BAD_ARG, "AM_MaxMedium");
    EQUAL(hamlyn_am_reply(token, 2, 17, NULL), AM_ERR_BAD_ARG);
    EQUAL(hamlyn_am_reply(token, 2, -1, NULL), AM_ERR_BAD_ARG);
    EQUAL(hamlyn_am_reply(token, 2, 1, NULL), AM_ERR_BAD_ARG);
    if (a == 1) {
        GOOD(AM_Reply1(token, 2, a));
        GIVES(AM_Reply1(token, 2, a), AM_ERR_RESOURCE, "reply already");
        GIVES(AMX_KeepToken(token, &kept), AM_ERR_RESOURCE, "reply already");
    }
    if (a == 2) {
        GOOD(AMX_KeepToken(token, &kept));
        GIVES(AM_Reply1(token, 2, a), AM_ERR_RESOURCE, "reply already");
        GIVES(AM_Reply1(kept, 2, a), AM_ERR_RESOURCE, "when AM_Poll has returned");
    }
    stale = token;
    ran++;
}

static void replied(void *token, int a) {
    en_t source;
    (void)a;
    GIVES(AM_Reply0(token, 1), AM_ERR_RESOURCE, "is a reply");
    GIVES(AMX_KeepToken(token, &kept), AM_ERR_RESOURCE, "is a reply");
    /* A reply comes from where the request went. */
    GOOD(AM_GetSourceEndpoint(token, &source));
    EQUAL(AMX_enEqual(source, name), 1);
    ran++;
}

static void set_up(void) {
    GOOD(AM_Init());
    GOOD(AM_AllocateBundle(AM_SEQ, &eb));
    GOOD(AM_AllocateEndpoint(eb, &ep, &name));
    GOOD(AM_SetTag(ep, 5));
    GOOD(AM_SetHandler(ep, 1, wrong));
    GOOD(AM_SetHandler(ep, 2, replied));
    GOOD(AM_Map(ep, 0, name, 5));
    GOOD(AM_SetEventMask(eb, AM_NOTEMPTY));
}

/* Every function, with whatever arguments, gives this code. */
static void all_give(int code) {
    eb_t bundle = eb;
    ep_t endpoint = ep;
    void *place;
    uintptr_t length;
    tag_t tag;
    handler_t handler;
    int number;
    char text[AMX_NAME_TEXT_BYTES];
    EQUAL(AM_AllocateBundle(AM_SEQ, &bundle), code);
    EQUAL(AM_AllocateEndpoint(eb, &endpoint, NULL), code);
    EQUAL(AM_FreeBundle(eb), code);
    EQUAL(AM_FreeEndpoint(ep), code);
    EQUAL(AM_MoveEndpoint(ep, eb, eb), code);
    EQUAL(AM_SetSeg(ep, text, sizeof text), code);
    EQUAL(AM_GetSeg(ep, &place, &length), code);
    EQUAL(AM_SetTag(ep, 5), code);
    EQUAL(AM_GetTag(ep, &tag), code);
    EQUAL(AM_Map(ep, 0, name, 5), code);
    EQUAL(AM_MapAny(ep, &number, name, 5), code);
    EQUAL(AM_UnMap(ep, 0), code);
    EQUAL(AM_GetTranslationInuse(ep, 0), code);
    EQUAL(AM_GetTranslationTag(ep, 0, &tag), code);
    EQUAL(AMX_SetTranslationTag(ep, 0, 5), code);
    EQUAL(AM_GetTranslationName(ep, 0, &name), code);
    EQUAL(AM_GetNumTranslations(ep, &number), code);
    EQUAL(AM_SetNumTranslations(ep, 8), code);
    EQUAL(AM_SetExpectedResources(ep, 1, 1), code);
    EQUAL(AM_SetHandler(ep, 1, nothing), code);
    EQUAL(AM_SetHandlerAny(ep, &handler, nothing), code);
    EQUAL(AM_GetNumHandlers(ep, &number), code);
    EQUAL(AM_SetNumHandlers(ep, 8), code);
    EQUAL(AM_GetEventMask(eb, &number), code);
    EQUAL(AM_SetEventMask(eb, AM_NOTEMPTY), code);
    EQUAL(AM_WaitSema(eb), code);
    EQUAL(AMX_WaitSemaFor(eb, 1), code);
    EQUAL(AM_Poll(eb), code);
    EQUAL(AM_Request0(ep, 0, 1), code);
    EQUAL(AM_RequestI0(ep, 0, 1, "x", 1), code);
    EQUAL(AM_RequestXfer0(ep, 0, 0, 1, "x", 1), code);
    EQUAL(AM_RequestXferAsync0(ep, 0, 0, 1, "x", 1), code);
    EQUAL(AM_GetXfer0(ep, 0, 0, 1, 0, 1), code);
    EQUAL(AM_GetXferAsync0(ep, 0, 0, 1, 0, 1), code);
    EQUAL(AMX_GetOutstanding(ep, &number), code);
    EQUAL(AMX_Publish(ep, "item"), code);
    EQUAL(AMX_Lookup("nobody", "item", 1, &name), code);
    EQUAL(AMX_GetEndpointName(ep, &name), code);
    EQUAL(AM_Terminate(), code);
    if (code != AM_ERR_BAD_ARG) {
        EQUAL(AM_Reply0(&place, 1), code);
        EQUAL(AM_ReplyI0(&place, 1, "x", 1), code);
        EQUAL(AM_ReplyXfer0(&place, 0, 1, "x", 1), code);
        EQUAL(AM_GetSourceEndpoint(&place, &name), code);
        EQUAL(AM_GetDestEndpoint(&place, &endpoint), code);
        EQUAL(AM_GetMsgTag(&place, &tag), code);
        EQUAL(AMX_KeepToken(&place, &place), code);
        EQUAL(AMX_DropToken(&place), code);
    }
}

static void *elsewhere(void *unused) {
    (void)unused;
    GIVES(AM_Init(), AM_ERR_RESOURCE, "another thread");
    all_give(AM_ERR_RESOURCE);
    GIVES(AM_Poll(eb), AM_ERR_RESOURCE, "the thread that called AM_Init");
    return NULL;
}

static void arguments(void) {
    eb_t bundle, other;
    ep_t endpoint;
    void *place;
    uintptr_t length;
    tag_t tag;
    handler_t handler;
    int number;
    char text[AMX_NAME_TEXT_BYTES], room[64];
    GIVES(AM_AllocateBundle(AM_PAR, &bundle), AM_ERR_RESOURCE, "AM_PAR");
    GIVES(AM_AllocateBundle(7, &bundle), AM_ERR_BAD_ARG, "AM_SEQ");
    GIVES(AM_AllocateBundle(AM_SEQ, NULL), AM_ERR_BAD_ARG, "null");
    GIVES(AM_AllocateEndpoint(NULL, &endpoint, NULL), AM_ERR_BAD_ARG, "bundle");
    GIVES(AM_AllocateEndpoint((eb_t)(void *)ep, &endpoint, NULL), AM_ERR_BAD_ARG, "bundle");
    GIVES(AM_AllocateEndpoint((eb_t)(void *)room, &endpoint, NULL), AM_ERR_BAD_ARG, "bundle");
    GIVES(AM_AllocateEndpoint(eb, NULL, NULL), AM_ERR_BAD_ARG, "null");
    GIVES(AM_GetTag(NULL, &tag), AM_ERR_BAD_ARG, "endpoint");
    GIVES(AM_GetTag((ep_t)(void *)eb, &tag), AM_ERR_BAD_ARG, "endpoint");
    GIVES(AM_GetTag(ep, NULL), AM_ERR_BAD_ARG, "null");
    GOOD(AM_AllocateBundle(AM_SEQ, &other));
    GIVES(AM_MoveEndpoint(ep, other, eb), AM_ERR_RESOURCE, "not in the bundle");
    GIVES(AM_MoveEndpoint(ep, eb, (eb_t)(void *)ep), AM_ERR_BAD_ARG, "bundle");
    GOOD(AM_AllocateEndpoint(other, &endpoint, NULL));
    GOOD(AM_FreeBundle(other));
    GIVES(AM_FreeBundle(other), AM_ERR_BAD_ARG, "freed");
    GIVES(AM_GetTag(endpoint, &tag), AM_ERR_BAD_ARG, "freed");
    GIVES(AM_Poll(other), AM_ERR_BAD_ARG, "freed");
    GOOD(AM_AllocateEndpoint(eb, &endpoint, NULL));
    GOOD(AM_FreeEndpoint(endpoint));
    GIVES(AM_FreeEndpoint(endpoint), AM_ERR_BAD_ARG, "freed");
    GIVES(AM_Request0(endpoint, 0, 1), AM_ERR_BAD_ARG, "freed");
    /* Segments. */
    GIVES(AM_SetSeg(ep, NULL, 5), AM_ERR_BAD_ARG, "null");
    GIVES(AM_SetSeg(ep, room, UINTPTR_MAX), AM_ERR_BAD_ARG, "longer than memory");
    GIVES(AM_GetSeg(ep, NULL, &length), AM_ERR_BAD_ARG, "null");
    GOOD(AM_SetSeg(ep, room, sizeof room));
    GOOD(AM_GetSeg(ep, &place, &length));
    EQUAL(place == room && length == sizeof room, 1);
    /* Translations. */
    GIVES(AM_Map(ep, 0, name, 5), AM_ERR_IN_USE, "AM_UnMap");
    GIVES(AM_Map(ep, -1, name, 5), AM_ERR_BAD_ARG, "AM_SetNumTranslations");
    GIVES(AM_Map(ep, 256, name, 5), AM_ERR_BAD_ARG, "AM_SetNumTranslations");
    GIVES(AM_Map(ep, 1, name, AM_NONE), AM_ERR_BAD_ARG, "AM_NONE");
    en_t none = {{0, 0, 0, 0, 0, 0, 0, 0}};
    GIVES(AM_Map(ep, 1, none, 5), AM_ERR_BAD_ARG, "name");
    GIVES(AM_UnMap(ep, 1), AM_ERR_BAD_ARG, "not mapped");
    GIVES(AM_GetTranslationInuse(ep, 1), AM_ERR_RESOURCE, "not mapped");
    GIVES(AM_GetTranslationInuse(ep, 999), AM_ERR_BAD_ARG, "AM_SetNumTranslations");
    GOOD(AM_GetTranslationInuse(ep, 0));
    GIVES(AM_GetTranslationTag(ep, 1, &tag), AM_ERR_BAD_ARG, "not mapped");
    GIVES(AM_GetTranslationName(ep, 1, &name), AM_ERR_BAD_ARG, "not mapped");
    GIVES(AM_Request0(ep, 1, 1), AM_ERR_BAD_ARG, "not mapped");
    GIVES(AM_Request0(ep, -5, 1), AM_ERR_BAD_ARG, "AM_SetNumTranslations");
    GIVES(AM_SetNumTranslations(ep, 0), AM_ERR_BAD_ARG, "1,048,576");
    GIVES(AM_SetNumTranslations(ep, (1 << 20) + 1), AM_ERR_BAD_ARG, "1,048,576");
    GOOD(AM_MaxNumTranslations(&number));
    EQUAL(number, 1 << 20);
    GOOD(AM_SetNumTranslations(ep, number));
    GOOD(AM_Map(ep, number - 1, name, 5));
    GIVES(AM_SetNumTranslations(ep, 2), AM_ERR_IN_USE, "unmap");
    GOOD(AM_UnMap(ep, number - 1));
    GOOD(AM_SetNumTranslations(ep, 2));
    GOOD(AM_GetNumTranslations(ep, &number));
    EQUAL(number, 2);
    GOOD(AM_MapAny(ep, &number, name, 5));
    EQUAL(number, 1);
    GIVES(AM_MapAny(ep, &number, name, 5), AM_ERR_RESOURCE, "AM_SetNumTranslations");
    GOOD(AM_UnMap(ep, 0));
    GOOD(AM_MapAny(ep, &number, name, 5));
    EQUAL(number, 0);
    GOOD(AMX_SetTranslationTag(ep, 1, 8));
    GOOD(AM_GetTranslationTag(ep, 1, &tag));
    EQUAL(tag, 8);
    GIVES(AM_SetExpectedResources(ep, 0, 1), AM_ERR_BAD_ARG, "expects");
    GOOD(AM_SetExpectedResources(ep, 4, 4));
    GOOD(AM_SetExpectedResources(ep, 5, 5));
    /* Handlers. */
    GOOD(AM_GetNumHandlers(ep, &number));
    EQUAL(number, 256);
    GIVES(AM_SetNumHandlers(ep, 257), AM_ERR_BAD_ARG, "256");
    GIVES(AM_SetNumHandlers(ep, 0), AM_ERR_BAD_ARG, "256");
    GIVES(AM_SetNumHandlers(ep, 2), AM_ERR_IN_USE, "handler");
    GOOD(AM_SetNumHandlers(ep, 4));
    GIVES(AM_SetHandler(ep, 4, nothing), AM_ERR_BAD_ARG, "AM_SetNumHandlers");
    GOOD(AM_SetHandlerAny(ep, &handler, nothing));
    EQUAL(handler, 3);
    GIVES(AM_SetHandlerAny(ep, &handler, nothing), AM_ERR_RESOURCE, "all handlers");
    GIVES(AM_SetHandlerAny(ep, NULL, nothing), AM_ERR_BAD_ARG, "null");
    /* Requests. */
    GIVES(AM_Request0(ep, 0, 0), AM_ERR_BAD_ARG, "handler 0");
    GIVES(AM_RequestI0(ep, 0, 1, NULL, 1), AM_ERR_BAD_ARG, "null");
    GIVES(AM_RequestI0(ep, 0, 1, room, 65001), AM_ERR_BAD_ARG, "AM_MaxMedium");
    GIVES(AM_RequestXfer0(ep, 0, 0, 1, room, (1u << 30) + 1), AM_ERR_BAD_ARG, "AM_MaxLong");
    GIVES(AM_GetXfer0(ep, 0, 0, 1, 0, (1u << 30) + 1), AM_ERR_BAD_ARG, "AM_MaxLong");
    GIVES(AM_GetXfer0(ep, 0, 0, 1, 1, sizeof room), AM_ERR_BAD_ARG, "segment of 64 bytes");
    EQUAL(hamlyn_am_request(ep, 0, 1, 0, 17, NULL), AM_ERR_BAD_ARG);
    /* Events. */
    GIVES(AM_SetEventMask(eb, 4), AM_ERR_BAD_ARG, "AM_CANSEND");
    GOOD(AM_SetEventMask(eb, AM_NOEVENTS));
    GIVES(AM_WaitSema(eb), AM_ERR_BAD_ARG, "AM_SetEventMask");
    GOOD(AM_SetEventMask(eb, AM_NOTEMPTY));
    GIVES(AMX_WaitSemaFor(eb, 1), AM_ERR_NOT_SENT, "in time");
    GOOD(AM_GetEventMask(eb, &number));
    EQUAL(number, AM_NOTEMPTY);
    /* Names and texts. */
    GIVES(AMX_NameToText(name, text, 104), AM_ERR_BAD_ARG, "AMX_NAME_TEXT_BYTES");
    GIVES(AMX_NameToText(none, text, sizeof text), AM_ERR_BAD_ARG, "name");
    GOOD(AMX_NameToText(name, text, sizeof text));
    GOOD(AMX_NameFromText(text, &none));
    EQUAL(AMX_enEqual(name, none), 1);
    text[7] = 'x';
    GIVES(AMX_NameFromText(text, &none), AM_ERR_BAD_ARG, "AMX_NameToText");
    GIVES(AMX_NameFromText("", &none), AM_ERR_BAD_ARG, "AMX_NameToText");
    GIVES(AMX_NameFromText(NULL, &none), AM_ERR_BAD_ARG, "null");
    GIVES(AMX_Lookup("nobody.is.there", "item", 1, &none), AM_ERR_RESOURCE, "nobody");
    GIVES(AMX_SetReturnPolicy(9), AM_ERR_BAD_ARG, "AMX_RETURN");
    GIVES(AMX_InitNamed("late"), AM_ERR_IN_USE, "before AM_Init");
    GIVES(hamlyn_am_init(HAMLYN_AM_1996), AM_ERR_BAD_ARG, "am1996.h");
    GIVES(hamlyn_am_init(3), AM_ERR_BAD_ARG, "version");
    GIVES(AMX_DropToken(room), AM_ERR_RESOURCE, "not kept");
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "before")) {
        all_give(AM_ERR_NOT_INIT);
        /* Limits need no start. */
        EQUAL(AM_MaxShort(), 16);
        EQUAL(AM_MaxMedium() >= 65000, 1);
        EQUAL(AM_MaxLong() >= 65000, 1);
        EQUAL(AM_MaxNumHandlers(), 256);
        uintptr_t length;
        GOOD(AM_MaxSegLength(&length));
        /* A start counts; after the last end it is as before. */
        set_up();
        GOOD(AM_Init());
        GOOD(AM_Terminate());
        GOOD(AM_Poll(eb));
        GOOD(AM_Terminate());
        all_give(AM_ERR_NOT_INIT);
        /* Old handles are refused by the next start. */
        GOOD(AM_Init());
        GIVES(AM_Poll((eb_t)(void *)ep), AM_ERR_BAD_ARG, "bundle");
        GOOD(AM_Terminate());
    } else if (!strcmp(what, "arguments")) {
        set_up();
        arguments();
        GOOD(AM_Terminate());
    } else if (!strcmp(what, "handler")) {
        set_up();
        for (int a = 0; a < 3; a++) {
            void *before = stale;
            ran = 0;
            GOOD(AM_Request1(ep, 0, 1, a));
            while (ran < 1) GOOD(AM_WaitSema(eb));
            GIVES(AM_Reply1(stale, 2, 0), AM_ERR_RESOURCE, "has returned");
            EQUAL(before != stale, 1);
            en_t source;
            GIVES(AM_GetSourceEndpoint(stale, &source), AM_ERR_RESOURCE, "has returned");
            if (a == 2) {
                GIVES(AM_Reply1(kept, 0, 3), AM_ERR_BAD_ARG, "handler 0");
                GOOD(AM_Reply1(kept, 2, 3));
                GIVES(AM_Reply1(kept, 2, 3), AM_ERR_RESOURCE, "used");
                GIVES(AMX_DropToken(kept), AM_ERR_RESOURCE, "used");
            }
            if (a > 0)
                while (ran < 2) GOOD(AM_WaitSema(eb));
        }
        /* A kept token that is dropped answers by an empty reply. */
        ran = 0;
        GOOD(AM_Request1(ep, 0, 1, 2));
        while (ran < 1) GOOD(AM_WaitSema(eb));
        int outstanding = 0;
        GOOD(AMX_GetOutstanding(ep, &outstanding));
        EQUAL(outstanding, 1);
        GOOD(AMX_DropToken(kept));
        for (int looks = 0; outstanding; looks++) {
            GOOD(AM_Poll(eb));
            GOOD(AMX_GetOutstanding(ep, &outstanding));
            EQUAL(looks < 100000000, 1);
        }
        /* One whose endpoint is freed is of no use, and does no harm. */
        GOOD(AM_Request1(ep, 0, 1, 2));
        ran = 0;
        while (ran < 1) GOOD(AM_WaitSema(eb));
        GOOD(AM_FreeEndpoint(ep));
        GIVES(AM_Reply1(kept, 2, 3), AM_ERR_BAD_ARG, "freed");
        GOOD(AM_Poll(eb));
        GOOD(AM_Terminate());
    } else if (!strcmp(what, "thread")) {
        pthread_t thread;
        set_up();
        EQUAL(pthread_create(&thread, NULL, elsewhere, NULL), 0);
        EQUAL(pthread_join(thread, NULL), 0);
        GOOD(AM_Poll(eb));
        GOOD(AM_Terminate());
    } else if (!strcmp(what, "fork")) {
        int status;
        set_up();
        pid_t child = fork();
        if (child == 0) {
            all_give(AM_ERR_NOT_INIT);
            set_up();
            ran = 0;
            GOOD(AM_Request1(ep, 0, 1, 1));
            while (ran < 2) GOOD(AM_WaitSema(eb));
            GOOD(AM_Terminate());
            return 0;
        }
        EQUAL(waitpid(child, &status, 0), child);
        EQUAL(status, 0);
        /* Nothing of the parent's changed. */
        GOOD(AM_Request1(ep, 0, 1, 1));
        while (ran < 2) GOOD(AM_WaitSema(eb));
        GOOD(AM_Terminate());
    } else if (!strcmp(what, "deadline")) {
        /* Nobody polls the destination: a request that has no credit is not sent, and says so in time. */
        eb_t other;
        ep_t silent;
        en_t silent_name;
        int sent = 0, code;
        set_up();
        GOOD(AMX_SetDeadline(50));
        GOOD(AM_AllocateBundle(AM_SEQ, &other));
        GOOD(AM_AllocateEndpoint(other, &silent, &silent_name));
        GOOD(AM_SetTag(silent, AM_ALL));
        GOOD(AM_Map(ep, 7, silent_name, 9));
        while ((code = AM_Request0(ep, 7, 1)) == AM_OK) sent++;
        EQUAL(code, AM_ERR_NOT_SENT);
        EQUAL(sent, 16);
        GIVES(AMX_TryRequest0(ep, 7, 1), AM_ERR_NOT_SENT, "no credit");
        GIVES(AM_RequestXferAsync0(ep, 7, 0, 1, "x", 1), AM_ERR_NOT_SENT, "no credit");
        /* AM_CANSEND: when the other has answered. */
        GOOD(AM_SetEventMask(eb, AM_CANSEND));
        GIVES(AMX_WaitSemaFor(eb, 20), AM_ERR_NOT_SENT, "in time");
        GOOD(AM_SetHandler(silent, 1, nothing));
        GOOD(AM_Poll(other));
        GOOD(AM_WaitSema(eb));
        for (int looks = 0; AMX_TryRequest0(ep, 7, 1) != AM_OK; looks++) {
            GOOD(AM_Poll(other));
            GOOD(AM_Poll(eb));
            EQUAL(looks < 1000000, 1);
        }
        tag_t tag;
        GOOD(AM_GetTag(silent, &tag));
        EQUAL(tag, AM_ALL);
        GOOD(AM_Terminate());
    } else {
        return 2;
    }
    printf("%s passed\n", what);
    return 0;
}
