/* What the kernel offers: UNIX sockets (stream, seqpacket) and pipes, polled or blocking.
 * Variants: unix_stream_poll, unix_stream_block, unix_seqpacket_poll, unix_seqpacket_block, pipe_poll, pipe_block. */
#include "../harness/session.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Above this a seqpacket message finds no buffer in the kernel. */
#define SEQPACKET_BYTES_MAX ((size_t)256 << 10)
#define SOCKET_BUFFER_BYTES (4 << 20)
#define PIPE_BUFFER_BYTES (1 << 20)

static bool polls, is_pipe, is_seqpacket;
/* By sender; with a pipe there is one reading end and one writing end in all. */
static int receive_from[SENDERS_MAX + 1], send_to[SENDERS_MAX + 1];
static int next_sender;

static const char *peer_supports(const struct order *order) {
  if (is_seqpacket && order->size > SEQPACKET_BYTES_MAX) return "the kernel takes no larger packets";
  if (is_pipe && order->senders > 1 && order->size > 4096) return "larger writes of several senders would mix";
  return NULL;
}

static inline bool would_block(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

static inline void peer_send(const char *data, size_t size) {
  int fd = send_to[session.role == RECEIVER ? 1 : session.role];
  for (size_t done = 0; done < size;) {
    ssize_t some = write(fd, data + done, size - done);
    if (some < 0) {
      if (would_block()) continue;
      fail("sending: %s", strerror(errno));
    }
    done += (size_t)some;
  }
}

/* Which of several senders has something; the only one, if there is one. */
static inline int ready_sender(void) {
  if (is_pipe || session.order.senders == 1) return 1;
  if (polls) {
    next_sender = next_sender % session.order.senders + 1;
    return next_sender;
  }
  static struct pollfd ready[SENDERS_MAX];
  static int at, found;
  for (;;) {
    for (; at < session.order.senders && found > 0; at++)
      if (ready[at].revents) return at++ + 1;
    for (int sender = 1; sender <= session.order.senders; sender++)
      ready[sender - 1] = (struct pollfd){.fd = receive_from[sender], .events = POLLIN};
    found = poll(ready, (nfds_t)session.order.senders, -1);
    at = 0;
  }
}

static inline char *peer_receive(char *into, size_t size) {
  int fd = receive_from[session.role == RECEIVER ? ready_sender() : session.role];
  for (size_t done = 0; done < size;) {
    ssize_t some = read(fd, into + done, size - done);
    if (some < 0) {
      if (!would_block()) fail("receiving: %s", strerror(errno));
      if (done == 0 && session.role == RECEIVER) fd = receive_from[ready_sender()];
      continue;
    }
    if (some == 0) fail("the other side is gone");
    done += (size_t)some;
  }
  return into;
}

static void peer_settle(void) {}

#include "../harness/figures.h"

static void buffers_of(int fd) {
  int bytes = SOCKET_BUFFER_BYTES;
  /* Forcing needs root; the kernel's limit applies otherwise. */
  if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0)
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static void open_sockets(int type) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  path_of(address.sun_path, sizeof address.sun_path, "socket");
  int listener = socket(AF_UNIX, type, 0);
  if (session.role == RECEIVER) {
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, SENDERS_MAX) != 0)
      fail("listening: %s", strerror(errno));
    publish("listening", "", 1);
    for (int senders = 0; senders < session.senders; senders++) {
      int fd = accept(listener, NULL, NULL);
      unsigned char sender = 0;
      if (fd < 0 || read(fd, &sender, 1) != 1 || sender < 1 || sender > session.senders) fail("accepting");
      buffers_of(fd);
      receive_from[sender] = send_to[sender] = fd;
    }
    close(listener);
  } else {
    char none;
    awaited("listening", &none, 1);
    if (connect(listener, (struct sockaddr *)&address, sizeof address) != 0) fail("connecting: %s", strerror(errno));
    buffers_of(listener);
    unsigned char sender = (unsigned char)session.role;
    if (write(listener, &sender, 1) != 1) fail("greeting");
    receive_from[sender] = send_to[sender] = listener;
  }
}

/* A FIFO can be opened by both sides at once; neither then waits for the other. */
static int open_fifo(const char *name) {
  char path[256];
  path_of(path, sizeof path, name);
  if (mkfifo(path, 0600) != 0 && errno != EEXIST) fail("making a pipe: %s", strerror(errno));
  int fd = open(path, O_RDWR);
  if (fd < 0) fail("opening a pipe: %s", strerror(errno));
  fcntl(fd, F_SETPIPE_SZ, PIPE_BUFFER_BYTES);
  return fd;
}

int main(int count, char **arguments) {
  session_open(count, arguments, -1, true);
  polls = strstr(session.variant, "_poll") != NULL;
  is_pipe = strncmp(session.variant, "pipe", 4) == 0;
  is_seqpacket = strstr(session.variant, "seqpacket") != NULL;
  if (is_pipe) {
    int there = open_fifo("there"), back = open_fifo("back");
    for (int sender = 0; sender <= SENDERS_MAX; sender++) {
      receive_from[sender] = session.role == RECEIVER ? there : back;
      send_to[sender] = session.role == RECEIVER ? back : there;
    }
  } else {
    open_sockets(is_seqpacket ? SOCK_SEQPACKET : SOCK_STREAM);
  }
  if (polls)
    for (int sender = 0; sender <= SENDERS_MAX; sender++) {
      int fds[] = {receive_from[sender], send_to[sender]};
      for (int at = 0; at < 2; at++)
        if (fds[at] > 0) fcntl(fds[at], F_SETFL, fcntl(fds[at], F_GETFL) | O_NONBLOCK);
    }
  figures();
  return 0;
}
