/* The figures of Active Messages, once for all peers in C. A peer defines, after it has included
 * this file:
 *
 *   peer_supports(order)       NULL, or why it cannot do that
 *   peer_request(data, place)  one request to the other, as `session.order` says: with arguments
 *                              from `active.arguments`, or that data for the handler, or for that
 *                              place of the other's segment; it may wait
 *   peer_ask()                 a request without arguments, for which the other calls active_asked
 *   peer_progress()            runs the handlers of what is there
 *   peer_free(turn)            before that request: has buffers of messages of before free again
 *   peer_settle()              all that was sent has left
 *   peer_reply(token, data)    the reply to a request, as `session.order` says
 *   peer_answer(token)         a reply without arguments
 *
 * and its handlers call
 *
 *   active_requested(token, message)   for a request; it may call the last two
 *   active_replied(message)            for such a reply
 *   active_asked(token)
 *   active_answered()                  for an answer
 *
 * Arguments are numbers of 32 bits; the first and the last carry the number of the message, as the
 * first and the last word of data do. A handler of a medium message looks at all of its data, as one
 * that uses them would: or else a library that leaves them in the cache of their sender would seem
 * to have moved them. Active messages may arrive in any order, so each number counts once; a request
 * without arguments is only counted.
 *
 * Requests of long messages go to places that are used again. So the receiver answers each fourth
 * part of them, and the sender waits with the next round for that. When all have come the receiver
 * asks, and the sender answers: so both have run the handlers of all that was sent before the next
 * order. */
#ifndef COMPARE_ACTIVE_H
#define COMPARE_ACTIVE_H

#include "session.h"

#define ACTIVE_SEGMENT_BYTES ((size_t)4 << 20)
#define ACTIVE_BUFFERS_BYTES ((size_t)256 << 10)
#define ACTIVE_BUFFERS_MAX 64

/* The message as a handler looks at it: data, or the first and the last argument. */
struct message {
  const char *data;
  size_t bytes;
  uint32_t first, last;
};

struct active {
  /* Of the next short message that is sent. */
  uint32_t arguments[ARGUMENTS_MAX];
  /* Messages that came and were right. */
  uint64_t came, right;
  uint64_t answers;
  /* The other has all. */
  bool over;
  size_t buffers, batch;
  char *source;
  /* A bit for each number that came. */
  uint64_t *numbers;
};

static struct active active;

static const char *peer_supports(const struct order *order);
static void peer_request(const char *data, size_t place);
static void peer_ask(void);
static void peer_progress(void);
static void peer_free(uint64_t sent);
static void peer_settle(void);
static void peer_reply(void *token, const char *data);
static void peer_answer(void *token);

/* Messages whose data are on their way at a time: 256 KiB together, and at least four. */
static size_t buffers_of(size_t size) {
  size_t buffers = ACTIVE_BUFFERS_BYTES / (size ? size : 1);
  return buffers < 4 ? 4 : buffers > ACTIVE_BUFFERS_MAX ? ACTIVE_BUFFERS_MAX : buffers;
}

static inline char *buffer_of(uint64_t turn) { return active.source + turn % active.buffers * session.order.size; }

/* Puts its number on a message; the buffer of its data, if it has any. */
static inline char *numbered(uint64_t turn) {
  size_t size = session.order.size;
  if (session.order.category == SHORT) {
    if (size) active.arguments[0] = active.arguments[size - 1] = (uint32_t)turn;
    return NULL;
  }
  char *data = buffer_of(turn);
  stamp(data, size, stamp_of(1, turn));
  return data;
}

/* True if the data between the two words are as they were sent. */
static inline bool is_whole(const char *data, size_t size) {
  uint64_t changed = 0;
  for (size_t at = 8; at + 16 <= size; at += 8) {
    uint64_t word;
    memcpy(&word, data + at, 8);
    changed |= word ^ 0x0101010101010101;
  }
  return changed == 0;
}

/* True if it has the number of a message of this order that has not come yet. */
static inline bool is_new(struct message message) {
  size_t size = session.order.size;
  uint64_t number = message.first;
  if (session.order.category == SHORT) {
    if (!size) return true;
    if (message.first != message.last) return false;
  } else {
    if (message.bytes != size) return false;
    memcpy(&number, message.data, sizeof number);
    if (!is_stamped(message.data, size, number)) return false;
    if (session.order.category == MEDIUM && !is_whole(message.data, size)) return false;
    number -= stamp_of(1, 0);
  }
  if (number >= session.order.count || active.numbers[number / 64] >> number % 64 & 1) return false;
  active.numbers[number / 64] |= (uint64_t)1 << number % 64;
  return true;
}

static inline void active_requested(void *token, struct message message) {
  uint64_t turn = active.came++;
  active.right += is_new(message);
  if (session.order.latency)
    peer_reply(token, numbered(turn));
  else if (session.order.category == LONG && active.came % active.batch == 0)
    peer_answer(token);
}

static inline void active_replied(struct message message) {
  active.right += is_new(message);
  active.came++;
}

static inline void active_asked(void *token) {
  active.over = true;
  peer_answer(token);
}

static inline void active_answered(void) { active.answers++; }

static inline void request(uint64_t turn) {
  peer_free(turn);
  char *data = numbered(turn);
  peer_request(data, turn % active.buffers * session.order.size);
}

static void receive_all(void) {
  uint64_t count = session.order.count;
  say("{\"ready\":true}");
  uint64_t begin = now_ns();
  while (active.came < count) {
    peer_progress();
    session.remaining = count - active.came;
  }
  uint64_t end = now_ns();
  peer_ask();
  while (active.answers == 0) peer_progress();
  peer_settle();
  answer(begin, end, active.right);
}

static void send_all(void) {
  const struct order *order = &session.order;
  uint64_t begin = now_ns();
  for (uint64_t turn = 0; turn < order->count; turn++) {
    if (order->latency) {
      request(turn);
      while (active.came == turn) peer_progress();
    } else {
      if (order->category == LONG)
        while (turn - active.answers * active.batch >= active.buffers) peer_progress();
      request(turn);
      active.right++;
    }
  }
  uint64_t end = now_ns();
  uint64_t answers = order->category == LONG ? order->count / active.batch : 0;
  while (!active.over || active.answers < answers) peer_progress();
  peer_settle();
  answer(begin, end, active.right);
}

/* Says that it is there, then does as it is told until there are no more orders. */
static void active_figures(void) {
  active.source = region(ACTIVE_SEGMENT_BYTES);
  say("{\"open\":true}");
  while (session_next()) {
    const struct order *order = &session.order;
    const char *reason = order->category == PLAIN ? "active messages only" : peer_supports(order);
    if (reason) {
      answer_unsupported(reason);
      continue;
    }
    if (order->category == LONG && order->size * buffers_of(order->size) > ACTIVE_SEGMENT_BYTES) fail("too long");
    /* Without the words of the order before. */
    memset(active.source, 1, ACTIVE_SEGMENT_BYTES);
    active.came = active.right = active.answers = 0;
    active.over = false;
    active.buffers = buffers_of(order->size);
    active.batch = active.buffers / 4;
    size_t words = order->count / 64 + 1;
    free(active.numbers);
    active.numbers = malloc(words * sizeof *active.numbers);
    if (!active.numbers) fail("no memory");
    memset(active.numbers, 0, words * sizeof *active.numbers);
    if (session.role == RECEIVER)
      receive_all();
    else
      send_all();
  }
}

/* Of the forms with so many arguments: parameters of handlers, the message that they are, and
 * arguments that are sent. */
#define UNUSED __attribute__((unused))
#define PARAMETERS_0(T)
#define PARAMETERS_4(T) , T a0, T a1 UNUSED, T a2 UNUSED, T a3 UNUSED
#define PARAMETERS_8(T) PARAMETERS_4(T), T a4 UNUSED, T a5 UNUSED, T a6 UNUSED, T a7 UNUSED
#define PARAMETERS_16(T) \
  PARAMETERS_8(T), T a8 UNUSED, T a9 UNUSED, T a10 UNUSED, T a11 UNUSED, T a12 UNUSED, T a13 UNUSED, T a14 UNUSED, T a15
#define MESSAGE_0 ((struct message){0})
#define MESSAGE_4 ((struct message){.first = (uint32_t)a0, .last = (uint32_t)a3})
#define MESSAGE_8 ((struct message){.first = (uint32_t)a0, .last = (uint32_t)a7})
#define MESSAGE_16 ((struct message){.first = (uint32_t)a0, .last = (uint32_t)a15})
#define MESSAGE_OF(data_, bytes_) ((struct message){.data = (data_), .bytes = (bytes_)})
#define GIVEN(T, at) (T) active.arguments[at]
#define GIVEN_0(T)
#define GIVEN_4(T) , GIVEN(T, 0), GIVEN(T, 1), GIVEN(T, 2), GIVEN(T, 3)
#define GIVEN_8(T) GIVEN_4(T), GIVEN(T, 4), GIVEN(T, 5), GIVEN(T, 6), GIVEN(T, 7)
#define GIVEN_16(T) \
  GIVEN_8(T), GIVEN(T, 8), GIVEN(T, 9), GIVEN(T, 10), GIVEN(T, 11), GIVEN(T, 12), GIVEN(T, 13), GIVEN(T, 14), \
      GIVEN(T, 15)
/* Lets arguments be macros that are several. */
#define APPLY(f, ...) f(__VA_ARGS__)
/* The form for the size of a short message. */
#define FOR_ARGUMENTS(FORM) \
  switch (session.order.size) { \
    case 0: FORM(0); break; \
    case 4: FORM(4); break; \
    case 8: FORM(8); break; \
    case 16: FORM(16); break; \
    default: fail("%zu arguments", session.order.size); \
  }
static inline int number_of(size_t arguments) { return arguments < 8 ? arguments / 4 : arguments < 16 ? 2 : 3; }

#endif
