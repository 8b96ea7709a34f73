/* Two users who do not trust each other (as root, who may become anybody). The receiver lets one user in; the kernel says who
 * sends, whatever the sender says.
 *
 *     users receive 65534      # lets that user in, and ends after one message
 *     users send 65534 "hello" # becomes that user
 */
#include <hamlyn.h>

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t WAIT_NS = 10000000000;

static int fail(const hamlyn_error *error) {
    fprintf(stderr, "%s\n", error->text);
    return 1;
}

/* A manager that may be linked to that user's, and to no other. */
static hamlyn_status open_for(const char *name, uint32_t user, hamlyn_manager **manager, hamlyn_error *error) {
    hamlyn_options options;
    hamlyn_status status = hamlyn_default_options(&options, error);
    options.name = name;
    options.access = HAMLYN_ACCESS_LISTED;
    options.users = &user;
    options.users_count = 1;
    return status ? status : hamlyn_open_with(&options, manager, error);
}

static int receive(uint32_t user) {
    hamlyn_error error;
    hamlyn_manager *vault;
    hamlyn_datagram_receiver *slot;
    hamlyn_message message;
    hamlyn_peer sender;
    if (open_for("vault", user, &vault, &error) || hamlyn_bind_datagram(vault, "slot", 256, &slot, &error)
        || hamlyn_recv_datagram(slot, HAMLYN_FOREVER, &message, &error) || hamlyn_datagram_peer(slot, &sender, &error)) {
        return fail(&error);
    }
    printf("user %u: %.*s\n", sender.user, (int)message.length_bytes, (const char *)message.data);
    hamlyn_close_datagram_receiver(slot, NULL);
    hamlyn_close(vault, NULL);
    return 0;
}

static int send_as(uint32_t user, const char *text) {
    const uint32_t before = getuid();
    if (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0) {
        perror("only root can become another user");
        return 1;
    }
    hamlyn_error error;
    hamlyn_manager *me;
    hamlyn_datagram_sender *slot;
    if (open_for(NULL, before, &me, &error) || hamlyn_connect_datagram(me, "vault/slot", WAIT_NS, &slot, &error)
        || hamlyn_send_datagram(slot, text, strlen(text), WAIT_NS, &error) || hamlyn_flush(me, WAIT_NS, &error)) {
        return fail(&error);
    }
    hamlyn_close_datagram_sender(slot, NULL);
    hamlyn_close(me, NULL);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "receive") == 0) {
        return receive((uint32_t)strtoul(argv[2], NULL, 10));
    }
    if (argc == 4 && strcmp(argv[1], "send") == 0) {
        return send_as((uint32_t)strtoul(argv[2], NULL, 10), argv[3]);
    }
    fprintf(stderr, "usage: users receive USER | users send USER TEXT\n");
    return 2;
}
