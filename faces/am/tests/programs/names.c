/* Two programs that nobody starts as a job: `names serve NAME`, `names ask NAME`. The server publishes an endpoint; the client looks it
 * up, and sends; the server answers to an endpoint that it learns from the message. */
#include "am.h"
#include "check.h"

static eb_t eb;
static ep_t ep;
static int asked, answered;
static en_t asker;

static void ask(void *token, int number) {
    GOOD(AM_GetSourceEndpoint(token, &asker));
    GIVES(AMX_GetSourceId(token, &number), AM_ERR_RESOURCE, "not mapped");
    asked++;
}
static void tell(void *token, void *buf, size_t nbytes, int number) {
    (void)token;
    EQUAL(number, -7);
    EQUAL(nbytes, 1000);
    EQUAL(((char *)buf)[999], 'x');
    answered++;
}

int main(int argc, char **argv) {
    char data[1000];
    EQUAL(argc, 3);
    memset(data, 'x', sizeof data);
    int is_server = !strcmp(argv[1], "serve");
    GOOD(is_server ? AMX_InitNamed(argv[2]) : AM_Init());
    GOOD(AM_AllocateBundle(AM_SEQ, &eb));
    GOOD(AM_AllocateEndpoint(eb, &ep, NULL));
    GOOD(AM_SetTag(ep, is_server ? 11 : 12));
    GOOD(AM_SetHandler(ep, 1, ask));
    GOOD(AM_SetHandler(ep, 2, tell));
    if (is_server) {
        GOOD(AMX_Publish(ep, "answers"));
        UNTIL(eb, asked == 1);
        GOOD(AM_Map(ep, 0, asker, 12));
        GOOD(AM_RequestI1(ep, 0, 2, data, sizeof data, -7));
        int outstanding = 1;
        while (outstanding) {
            int code = AMX_WaitSemaFor(eb, 10);
            if (code != AM_OK) EQUAL(code, AM_ERR_NOT_SENT);
            GOOD(AMX_GetOutstanding(ep, &outstanding));
        }
    } else {
        en_t name;
        GOOD(AMX_Lookup(argv[2], "answers", 30000, &name));
        GOOD(AM_Map(ep, 5, name, 11));
        GOOD(AM_Request1(ep, 5, 1, 3));
        UNTIL(eb, answered == 1);
    }
    GOOD(AM_Terminate());
    printf("%s passed\n", argv[1]);
    return 0;
}
