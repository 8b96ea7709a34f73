// Completion queues of hamlyn.hpp, and waits for several queues.

#ifndef HAMLYN_COMPLETIONS_HPP
#define HAMLYN_COMPLETIONS_HPP

#include "one_sided.hpp"

#include <initializer_list>

namespace hamlyn {

// The end of what was given to a completion queue, or a packet that came back.
struct completion {
    // The program's number; of a packet that came back that of its link (manager::set_link_context).
    std::uint64_t context = 0;
    // Of an operation that was given by `track_word`: the word before its change, or as it was read.
    std::uint64_t word = 0;
    // Without it all is well. Its code is that of the same error in the call that waits.
    std::optional<error> failure;
    // The packet that came back (completion_queue::track_refusals).
    std::optional<hamlyn_undelivered> returned;

    explicit operator bool() const noexcept { return !failure; }
};

// The ends of sends, fences and operations, in any order. Each that is tracked takes a place until its completion is fetched; without a free place
// it is not tracked (HAMLYN_LIMIT), and goes on by itself.
class completion_queue : public detail::handle<hamlyn_completion_queue, hamlyn_close_completions> {
  public:
    using handle::handle;
    completion_queue(const manager &of, std::size_t places)
        : handle(detail::found<hamlyn_completion_queue *>(hamlyn_open_completions, of.get(), places)) {}

    // The message of that number, which `send` returned: complete when its buffers are free.
    void track_send(const target &to, std::uint64_t sequence, std::uint64_t context) {
        detail::attempt(hamlyn_track_send, get(), to.get(), sequence, context).value();
    }
    // Complete when all that was accepted for that link before is in its place.
    void track_fence(std::uint64_t link, std::uint64_t context) {
        detail::attempt(hamlyn_track_fence, get(), link, context).value();
    }
    // It cannot be finished any more.
    void track_operation(const initiator &of, initiator::operation begun, std::uint64_t context) {
        detail::attempt(hamlyn_track_operation, get(), of.get(), begun, context).value();
    }
    // The same for one with a word.
    void track_word(const initiator &of, initiator::operation begun, std::uint64_t context) {
        detail::attempt(hamlyn_track_word, get(), of.get(), begun, context).value();
    }
    // Packets that come back, from now on.
    void track_refusals() { detail::attempt(hamlyn_track_refusals, get()).value(); }

    result<std::optional<completion>> try_recv(wait limit) {
        hamlyn_work_completion next;
        hamlyn_error why;
        return detail::attempt_in_time(hamlyn_next_completion, get(), limit.ns(), &next, &why).map([&](bool is_there) {
            std::optional<completion> found;
            if (is_there) {
                found.emplace();
                found->context = next.context;
                found->word = next.word;
                if (next.status != HAMLYN_OK) {
                    found->failure.emplace(why);
                }
                if (next.is_returned) {
                    found->returned = next.packet;
                }
            }
            return found;
        });
    }
    // The next completion; nothing if none came in time. With coroutines, `co_await loop.recv(queue)`.
    std::optional<completion> recv(wait limit = wait::forever()) { return try_recv(limit).value(); }
};

// What `await_any` looks at.
inline hamlyn_source source_of(const queue &of) { return {HAMLYN_SOURCE_MESSAGES, of.get()}; }
inline hamlyn_source source_of(const completion_queue &of) { return {HAMLYN_SOURCE_COMPLETIONS, of.get()}; }

// Waits until one of several queues of a manager has something: the place of the first that has; nothing if none has in time.
inline std::optional<std::size_t> await_any(const manager &of, const hamlyn_source *sources, std::size_t count,
                                            wait limit = wait::forever()) {
    std::size_t ready = 0;
    const bool is_any = detail::attempt_in_time(hamlyn_await_any, of.get(), sources, count, limit.ns(), &ready).value();
    return is_any ? std::optional<std::size_t>(ready) : std::nullopt;
}
inline std::optional<std::size_t> await_any(const manager &of, std::initializer_list<hamlyn_source> sources,
                                            wait limit = wait::forever()) {
    return await_any(of, sources.begin(), sources.size(), limit);
}

} // namespace hamlyn

#endif // HAMLYN_COMPLETIONS_HPP
