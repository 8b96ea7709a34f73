/* The figures, once for all peers in C. A peer defines, before it includes this file:
 *
 *   peer_supports(order)       NULL, or why it cannot do that
 *   peer_send(data, size)      one message to the receiver; or, in a latency, to the sender
 *   peer_receive(into, size)   the next message, in `into` or wherever it lies until the next call
 *   peer_settle()              all that was sent is on its way, all buffers can be used again
 *   PEER_BUFFERS(size)         how many messages it may have on their way at a time; if undefined, one
 *
 * All are static, so the compiler joins them with the loops below. */
#ifndef COMPARE_FIGURES_H
#define COMPARE_FIGURES_H

#include "session.h"

#ifndef PEER_BUFFERS
#define PEER_BUFFERS(size) 1
#endif

/* The buffers of an order: the same few again and again, or each time another part of a large region. */
struct walk {
  char *base;
  size_t step, end, at;
};

static struct walk walk_through(char **memory, const struct order *order) {
  size_t buffers = order->latency ? 1 : PEER_BUFFERS(order->size);
  size_t needed = order->fresh ? REGION_BYTES : order->size * buffers;
  static size_t held[2];
  size_t *have = &held[memory == &session.target];
  if (*have < needed) {
    if (*memory) munmap(*memory, *have);
    *memory = region(needed);
    *have = needed;
  }
  return (struct walk){.base = *memory, .step = order->size, .end = needed - order->size, .at = 0};
}

static inline char *next_of(struct walk *walk) {
  char *here = walk->base + walk->at;
  walk->at = walk->at + walk->step > walk->end ? 0 : walk->at + walk->step;
  return here;
}

static void latency(void) {
  const struct order *order = &session.order;
  size_t size = order->size;
  struct walk source = walk_through(&session.source, order), target = walk_through(&session.target, order);
  uint64_t checked = 0;
  if (session.role == RECEIVER) {
    say("{\"ready\":true}");
    uint64_t begin = now_ns();
    for (uint64_t turn = 0; turn < order->count; turn++, session.remaining--) {
      char *data = peer_receive(next_of(&target), size);
      checked += is_stamped(data, size, stamp_of(1, turn));
      peer_send(data, size);
    }
    peer_settle();
    answer(begin, now_ns(), checked);
  } else {
    uint64_t begin = now_ns();
    for (uint64_t turn = 0; turn < order->count; turn++, session.remaining--) {
      char *out = next_of(&source);
      stamp(out, size, stamp_of(1, turn));
      peer_send(out, size);
      char *data = peer_receive(next_of(&target), size);
      checked += is_stamped(data, size, stamp_of(1, turn));
    }
    uint64_t end = now_ns();
    peer_settle();
    answer(begin, end, checked);
  }
}

static void stream(void) {
  const struct order *order = &session.order;
  size_t size = order->size;
  if (session.role == RECEIVER) {
    struct walk target = walk_through(&session.target, order);
    uint64_t expected[SENDERS_MAX + 1] = {0}, checked = 0;
    session.remaining = order->count * (uint64_t)order->senders;
    say("{\"ready\":true}");
    uint64_t begin = now_ns();
    while (session.remaining > 0) {
      char *data = peer_receive(next_of(&target), size);
      uint64_t first;
      memcpy(&first, data, 8);
      unsigned sender = (unsigned)(first >> 48);
      if (sender <= SENDERS_MAX) checked += is_stamped(data, size, stamp_of((int)sender, expected[sender]++));
      session.remaining--;
    }
    uint64_t end = now_ns();
    peer_settle();
    answer(begin, end, checked);
  } else {
    struct walk source = walk_through(&session.source, order);
    uint64_t begin = now_ns();
    for (uint64_t turn = 0; turn < order->count; turn++, session.remaining--) {
      char *data = next_of(&source);
      stamp(data, size, stamp_of(session.role, turn));
      peer_send(data, size);
    }
    peer_settle();
    answer(begin, now_ns(), order->count);
  }
}

/* Says that it is there, then does as it is told until there are no more orders. */
static void figures(void) {
  say("{\"open\":true}");
  while (session_next()) {
    const char *reason = peer_supports(&session.order);
    if (reason) {
      answer_unsupported(reason);
      continue;
    }
    session.remaining = session.order.count;
    if (session.order.latency)
      latency();
    else
      stream();
  }
}

#endif
