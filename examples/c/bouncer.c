/* Revocation: a service that dismisses a client which asks for what it must not. Its key is worthless from then on; others are
 * served as before.
 *
 *     bouncer serve 2               # ends after two good calls
 *     bouncer ask public            # prints the answer
 *     bouncer ask secret public     # is dismissed, and gets no answer to the other call either
 */
#include <hamlyn.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t WAIT_NS = 10000000000;

static int fail(const hamlyn_error *error) {
    fprintf(stderr, "%s\n", error->text);
    return 1;
}

static int serve(int calls) {
    static const char forbidden[] = "secret", answer[] = "come in";
    hamlyn_error error;
    hamlyn_manager *door;
    hamlyn_service *service;
    if (hamlyn_open("door", &door, &error) || hamlyn_bind_service(door, "service", NULL, &service, &error)) {
        return fail(&error);
    }
    while (calls > 0) {
        hamlyn_message request;
        hamlyn_peer client;
        if (hamlyn_next_call(service, HAMLYN_FOREVER, &request, &error)) {
            return fail(&error);
        }
        if (request.length_bytes != strlen(forbidden) || memcmp(request.data, forbidden, strlen(forbidden)) != 0) {
            if (hamlyn_reply(service, answer, strlen(answer), &error)) {
                return fail(&error);
            }
            calls--;
            continue;
        }
        /* A client whose link ended meanwhile is known no more (HAMLYN_NOT_FOUND): no reason to stop serving others. */
        const int is_known = hamlyn_call_peer(service, &client, NULL) == HAMLYN_OK;
        if (hamlyn_dismiss_client(service, &error)) {
            return fail(&error);
        }
        if (is_known) {
            printf("process %u of user %u is dismissed\n", client.process, client.user);
        }
    }
    /* The last answer has left this program before it ends. */
    if (hamlyn_flush(door, WAIT_NS, &error)) {
        return fail(&error);
    }
    hamlyn_close_service(service, NULL);
    hamlyn_close(door, NULL);
    return 0;
}

static int ask(char **calls, int count) {
    hamlyn_error error;
    hamlyn_manager *me;
    hamlyn_client *door;
    hamlyn_message answer;
    if (hamlyn_open(NULL, &me, &error) || hamlyn_connect_service(me, "door/service", WAIT_NS, &door, &error)) {
        return fail(&error);
    }
    for (int i = 0; i < count; i++) {
        if (hamlyn_call(door, calls[i], strlen(calls[i]), WAIT_NS, &answer, &error) == HAMLYN_OK) {
            printf("%.*s\n", (int)answer.length_bytes, (const char *)answer.data);
            hamlyn_release_reply(door, NULL);
        } else {
            printf("%s\n", error.text);
        }
    }
    hamlyn_close_client(door, NULL);
    hamlyn_close(me, NULL);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "serve") == 0) {
        return serve(atoi(argv[2]));
    }
    if (argc >= 3 && strcmp(argv[1], "ask") == 0) {
        return ask(argv + 2, argc - 2);
    }
    fprintf(stderr, "usage: bouncer serve CALLS | bouncer ask WHAT...\n");
    return 2;
}
