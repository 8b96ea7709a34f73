/* What bad input gets: an error that says what it is and what to do, and nothing else. */
#include <hamlyn.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static hamlyn_error error;

static void check(int holds, const char *what, int line) {
    if (!holds) {
        fprintf(stderr, "line %d: not so: %s: status %d: %s\n", line, what, (int)error.status, error.text);
        _exit(1);
    }
}

#define IS(condition) check((condition), #condition, __LINE__)
#define GETS(expected, said, call)                                                                                \
    (memset(&error, 0, sizeof error), IS((call) == (expected)), IS(error.status == (expected)),                   \
     IS(strstr(error.text, (said)) != NULL))

static hamlyn_manager *manager;
static hamlyn_datagram_receiver *receiver;

static void *in_another_thread(void *unused) {
    hamlyn_message message;
    (void)unused;
    GETS(HAMLYN_OTHER_THREAD, "shared", hamlyn_poll(manager, &error));
    GETS(HAMLYN_OTHER_THREAD, "thread", hamlyn_recv_datagram(receiver, HAMLYN_POLL, &message, &error));
    GETS(HAMLYN_OTHER_THREAD, "thread", hamlyn_close_datagram_receiver(receiver, &error));
    return NULL;
}

static volatile sig_atomic_t signals;

static void count_signal(int number) {
    (void)number;
    signals++;
}

int main(void) {
    hamlyn_message message;
    hamlyn_datagram_sender *sender;

    /* Null, and texts that are none. */
    GETS(HAMLYN_INVALID, "null", hamlyn_open(NULL, NULL, &error));
    GETS(HAMLYN_INVALID, "UTF-8", hamlyn_open("\xff\xfe", &manager, &error));
    GETS(HAMLYN_INVALID, "cannot be used", hamlyn_open("a name", &manager, &error));
    IS(hamlyn_open("a name", &manager, NULL) == HAMLYN_INVALID);
    IS(hamlyn_open("bad-input", &manager, &error) == HAMLYN_OK);
    GETS(HAMLYN_TAKEN, "bad-input", hamlyn_open("bad-input", &manager, &error));
    GETS(HAMLYN_BAD_HANDLE, "manager", hamlyn_poll(NULL, &error));
    GETS(HAMLYN_INVALID, "item is null", hamlyn_bind_service(manager, NULL, NULL, (hamlyn_service *[1]){NULL}, &error));
    GETS(HAMLYN_INVALID, "receiver is null", hamlyn_bind_datagram(manager, "inbox", 64, NULL, &error));
    GETS(HAMLYN_INVALID, "", hamlyn_bind_datagram(manager, "inbox", 0, &receiver, &error));
    GETS(HAMLYN_INVALID, "item", hamlyn_bind_datagram(manager, "no such/item", 64, &receiver, &error));

    /* Options that were never set, and those of no library. */
    hamlyn_options options;
    memset(&options, 0, sizeof options);
    GETS(HAMLYN_INVALID, "hamlyn_default_options", hamlyn_open_with(&options, &manager, &error));
    IS(hamlyn_default_options(&options, &error) == HAMLYN_OK);
    options.strategy = 99;
    GETS(HAMLYN_INVALID, "HAMLYN_PROC", hamlyn_open_with(&options, &manager, &error));

    /* A program of the first version, which knows fewer fields: what lies behind them is not read. */
    IS(hamlyn_default_options(&options, &error) == HAMLYN_OK);
    options.access = 99;
    GETS(HAMLYN_INVALID, "HAMLYN_ACCESS_SAME_USER", hamlyn_open_with(&options, &manager, &error));
    hamlyn_manager *older;
    options.struct_bytes = offsetof(hamlyn_options, access);
    IS(hamlyn_open_with(&options, &older, &error) == HAMLYN_OK);
    IS(hamlyn_close(older, &error) == HAMLYN_OK);
    options.struct_bytes = sizeof options + 1;
    GETS(HAMLYN_INVALID, "HAMLYN_ACCESS_SAME_USER", hamlyn_open_with(&options, &manager, &error));
    IS(hamlyn_default_options(&options, &error) == HAMLYN_OK);
    options.access = HAMLYN_ACCESS_LISTED;
    options.users_count = 1;
    GETS(HAMLYN_INVALID, "users", hamlyn_open_with(&options, &manager, &error));
    options.access = HAMLYN_ACCESS_ANYONE;
    options.cells = 3;
    GETS(HAMLYN_INVALID, "cells", hamlyn_open_with(&options, &manager, &error));
    options.cells = 0;
    options.network = 3;
    GETS(HAMLYN_INVALID, "HAMLYN_NETWORK_ENVIRONMENT", hamlyn_open_with(&options, &manager, &error));
    options.network = HAMLYN_NETWORK_ON;
    GETS(HAMLYN_INVALID, "network options", hamlyn_open_with(&options, &manager, &error));
    hamlyn_network_options network;
    memset(&network, 0, sizeof network);
    options.network_options = &network;
    GETS(HAMLYN_INVALID, "secret", hamlyn_open_with(&options, &manager, &error));
    network.secret_file = "/nowhere/at/all";
    GETS(HAMLYN_INVALID, "/nowhere/at/all", hamlyn_open_with(&options, &manager, &error));
    network.key_file = "/nowhere/at/all";
    GETS(HAMLYN_INVALID, "secret", hamlyn_open_with(&options, &manager, &error));
    network.key_file = network.secret_file = NULL;
    network.insecure = 1;
    network.listen = "no address";
    GETS(HAMLYN_INVALID, "address", hamlyn_open_with(&options, &manager, &error));
    network.listen = NULL;
    network.paths = 300;
    GETS(HAMLYN_INVALID, "paths", hamlyn_open_with(&options, &manager, &error));

    /* Addresses. */
    GETS(HAMLYN_NOT_FOUND, "nobody", hamlyn_connect_datagram(manager, "nobody/inbox", 1000000, &sender, &error));
    GETS(HAMLYN_INVALID, "name/item", hamlyn_connect_datagram(manager, "inbox", 1000000, &sender, &error));
    hamlyn_ticket ticket;
    memset(&ticket, 0x5a, sizeof ticket);
    GETS(HAMLYN_INVALID, "", hamlyn_grow_datagram(manager, &ticket, 1000000, &sender, &error));

    /* Handles: another kind, a closed one, one of another thread. */
    IS(hamlyn_bind_datagram(manager, "inbox", 64, &receiver, &error) == HAMLYN_OK);
    GETS(HAMLYN_BAD_HANDLE, "another kind", hamlyn_poll((hamlyn_manager *)receiver, &error));
    IS(hamlyn_datagram_ticket(receiver, &ticket, &error) == HAMLYN_OK);
    IS(hamlyn_grow_datagram(manager, &ticket, 1000000000, &sender, &error) == HAMLYN_OK);
    GETS(HAMLYN_INVALID, "null", hamlyn_send_datagram(sender, NULL, 1, HAMLYN_POLL, &error));
    GETS(HAMLYN_INVALID, "longer", hamlyn_send_datagram(sender, "x", (size_t)-1, HAMLYN_POLL, &error));
    GETS(HAMLYN_TOO_LONG, "", hamlyn_send_datagram(sender, (char[65]){0}, 65, HAMLYN_POLL, &error));
    IS(hamlyn_send_datagram(sender, NULL, 0, HAMLYN_POLL, &error) == HAMLYN_OK);
    IS(hamlyn_recv_datagram(receiver, 1000000000, &message, &error) == HAMLYN_OK);
    IS(message.length_bytes == 0);
    GETS(HAMLYN_HELD, "release", hamlyn_recv_datagram(receiver, HAMLYN_POLL, &message, &error));
    IS(hamlyn_release_datagram(receiver, &error) == HAMLYN_OK);
    IS(hamlyn_close_datagram_sender(sender, &error) == HAMLYN_OK);
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_close_datagram_sender(sender, &error));
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_send_datagram(sender, "x", 1, HAMLYN_POLL, &error));
    IS(hamlyn_close_datagram_sender(NULL, &error) == HAMLYN_OK);
    pthread_t thread;
    IS(pthread_create(&thread, NULL, in_another_thread, NULL) == 0);
    IS(pthread_join(thread, NULL) == 0);

    /* A child has no part in what its parent opened, and its parent goes on. */
    pid_t child = fork();
    IS(child >= 0);
    if (child == 0) {
        GETS(HAMLYN_BAD_HANDLE, "child", hamlyn_recv_datagram(receiver, 1000000000, &message, &error));
        hamlyn_manager *own;
        IS(hamlyn_open(NULL, &own, &error) == HAMLYN_OK);
        IS(hamlyn_close(own, &error) == HAMLYN_OK);
        _exit(0);
    }
    int status;
    IS(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);

    /* A signal does not end a wait. */
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = count_signal;
    IS(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval timer = {{0, 5000}, {0, 5000}};
    IS(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    while (signals < 3) {
        GETS(HAMLYN_TIMED_OUT, "", hamlyn_recv_datagram(receiver, 20000000, &message, &error));
    }
    memset(&timer, 0, sizeof timer);
    IS(setitimer(ITIMER_REAL, &timer, NULL) == 0);

    /* End points go on without their manager's handle. */
    IS(hamlyn_grow_datagram(manager, &ticket, 1000000000, &sender, &error) == HAMLYN_OK);
    IS(hamlyn_close(manager, &error) == HAMLYN_OK);
    GETS(HAMLYN_BAD_HANDLE, "closed", hamlyn_poll(manager, &error));
    IS(hamlyn_send_datagram(sender, "x", 1, HAMLYN_POLL, &error) == HAMLYN_OK);
    IS(hamlyn_recv_datagram(receiver, 1000000000, &message, &error) == HAMLYN_OK);
    IS(hamlyn_close_datagram_sender(sender, &error) == HAMLYN_OK);
    IS(hamlyn_close_datagram_receiver(receiver, &error) == HAMLYN_OK);
    puts("passed");
    return 0;
}
