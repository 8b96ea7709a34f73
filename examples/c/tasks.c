/* An event loop of epoll: messages of two end points, and signals, in one thread that sleeps while nothing happens.
 *
 *     tasks listen 3           # ends after three messages, whichever way they come, or by SIGINT or SIGTERM
 *     tasks say "over here"
 *     tasks count 7
 */
#include <hamlyn.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int64_t WAIT_NS = 10000000000;

static int fail(const hamlyn_error *error) {
    fprintf(stderr, "%s\n", error->text);
    return 1;
}

/* A descriptor that can be read when the program is to end. */
static int open_signals(void) {
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigprocmask(SIG_BLOCK, &ending, NULL);
    return signalfd(-1, &ending, SFD_CLOEXEC);
}

/* An epoll that watches both. */
static int watch(int manager, int signals) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event messages = {.events = EPOLLIN, .data.fd = manager};
    struct epoll_event ends = {.events = EPOLLIN, .data.fd = signals};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, manager, &messages) != 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, signals, &ends) != 0) {
        perror("epoll");
        exit(1);
    }
    return epoll;
}

static int listen_to(int count) {
    hamlyn_error error;
    hamlyn_manager *listener;
    hamlyn_datagram_receiver *texts;
    hamlyn_tag_receiver *numbers;
    int descriptor;
    const int signals = open_signals();
    if (hamlyn_open("listener", &listener, &error) || hamlyn_bind_datagram(listener, "texts", 256, &texts, &error)
        || hamlyn_bind_tagged_write(listener, "numbers", 64, 64, &numbers, &error)
        || hamlyn_descriptor(listener, &descriptor, &error)) {
        return fail(&error);
    }
    const int epoll = watch(descriptor, signals);
    for (;;) {
        /* Each end point is asked until it has nothing. */
        hamlyn_message text;
        uint64_t number;
        hamlyn_status status;
        while ((status = hamlyn_recv_datagram(texts, HAMLYN_POLL, &text, &error)) == HAMLYN_OK) {
            printf("%.*s\n", (int)text.length_bytes, (const char *)text.data);
            hamlyn_release_datagram(texts, NULL);
            count--;
        }
        if (status != HAMLYN_TIMED_OUT) {
            return fail(&error);
        }
        while ((status = hamlyn_recv_tag(numbers, HAMLYN_POLL, &number, &error)) == HAMLYN_OK) {
            printf("number %" PRIu64 "\n", number);
            count--;
        }
        if (status != HAMLYN_TIMED_OUT) {
            return fail(&error);
        }
        if (count <= 0) {
            break;
        }

        /* Then the loop may sleep. What came in between makes the timeout 0. */
        int64_t timeout_ns;
        if (hamlyn_prepare_sleep(listener, HAMLYN_FOREVER, &timeout_ns, &error)) {
            return fail(&error);
        }
        const int timeout_ms = timeout_ns < 0 ? -1 : (int)((timeout_ns + 999999) / 1000000);
        struct epoll_event event;
        const int ready = epoll_wait(epoll, &event, 1, timeout_ms);
        if (ready < 0 && errno != EINTR) {
            perror("epoll_wait");
            return 1;
        }
        if (hamlyn_end_sleep(listener, &error)) {
            return fail(&error);
        }
        if (ready > 0 && event.data.fd == signals) {
            printf("ended by a signal\n");
            break;
        }
    }
    close(epoll);
    close(signals);
    hamlyn_close_tag_receiver(numbers, NULL);
    hamlyn_close_datagram_receiver(texts, NULL);
    hamlyn_close(listener, NULL);
    return 0;
}

static int say(const char *text) {
    hamlyn_error error;
    hamlyn_manager *me;
    hamlyn_datagram_sender *texts;
    if (hamlyn_open(NULL, &me, &error) || hamlyn_connect_datagram(me, "listener/texts", WAIT_NS, &texts, &error)
        || hamlyn_send_datagram(texts, text, strlen(text), WAIT_NS, &error) || hamlyn_flush(me, WAIT_NS, &error)) {
        return fail(&error);
    }
    hamlyn_close_datagram_sender(texts, NULL);
    hamlyn_close(me, NULL);
    return 0;
}

static int count(uint64_t number) {
    hamlyn_error error;
    hamlyn_manager *me;
    hamlyn_tag_sender *numbers;
    if (hamlyn_open(NULL, &me, &error) || hamlyn_connect_tagged_write(me, "listener/numbers", WAIT_NS, &numbers, &error)
        || hamlyn_send_tag(numbers, 0, NULL, 0, number, WAIT_NS, &error) || hamlyn_flush(me, WAIT_NS, &error)) {
        return fail(&error);
    }
    hamlyn_close_tag_sender(numbers, NULL);
    hamlyn_close(me, NULL);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "listen") == 0) {
        return listen_to(atoi(argv[2]));
    }
    if (argc == 3 && strcmp(argv[1], "say") == 0) {
        return say(argv[2]);
    }
    if (argc == 3 && strcmp(argv[1], "count") == 0) {
        return count(strtoull(argv[2], NULL, 10));
    }
    fprintf(stderr, "usage: tasks listen COUNT | tasks say TEXT | tasks count NUMBER\n");
    return 2;
}
