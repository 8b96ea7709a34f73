/* Active Messages between two programs that nobody starts together (docs/active-messages.md):
 *
 *   cc hello.c -o hello -lhamlyn_am
 *   ./hello serve &
 *   ./hello ask 20 22
 *
 * The server adds two numbers for whoever knows its name and its tag. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <am.h>

#define TAG 0x5eed /* whoever knows it may send */

enum { ADD = 1, SUM = 2 };

static int is_done;

static void check(int code) {
    if (code == AM_OK) return;
    fprintf(stderr, "hello: %s\n", AMX_ErrorText());
    exit(1);
}

/* Runs at the server, when it polls. */
static void add(void *token, int a, int b) {
    check(AM_Reply1(token, SUM, a + b));
    is_done = 1;
}

/* Runs at the client. */
static void sum(void *token, int result) {
    (void)token;
    printf("%d\n", result);
    is_done = 1;
}

/* A message came back. */
static void returned(int status, op_t opcode, void *token) {
    (void)token;
    fprintf(stderr, "hello: message of kind %d came back: %d\n", opcode, status);
    exit(1);
}

int main(int argc, char **argv) {
    int is_server = argc == 2 && !strcmp(argv[1], "serve");
    eb_t bundle;
    ep_t endpoint;
    if (!is_server && argc != 4) {
        fprintf(stderr, "usage: hello serve | hello ask A B\n");
        return 2;
    }
    check(is_server ? AMX_InitNamed("hello") : AM_Init());
    check(AM_AllocateBundle(AM_SEQ, &bundle));
    check(AM_AllocateEndpoint(bundle, &endpoint, NULL));
    check(AM_SetHandler(endpoint, 0, returned));
    check(AM_SetEventMask(bundle, AM_NOTEMPTY));
    if (is_server) {
        check(AM_SetHandler(endpoint, ADD, add));
        check(AM_SetTag(endpoint, TAG));
        check(AMX_Publish(endpoint, "adder"));
    } else {
        en_t adder;
        check(AM_SetHandler(endpoint, SUM, sum));
        check(AMX_Lookup("hello", "adder", 10000, &adder));
        check(AM_Map(endpoint, 0, adder, TAG));
        check(AM_Request2(endpoint, 0, ADD, atoi(argv[2]), atoi(argv[3])));
    }
    /* Sleeps until a message is there, and runs its handler. */
    while (!is_done) check(AM_WaitSema(bundle));
    check(AM_Terminate());
    return 0;
}
