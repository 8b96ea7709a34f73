// One-sided operations of hamlyn.hpp: reads, writes and changes of the memory that a ticket names.

#ifndef HAMLYN_ONE_SIDED_HPP
#define HAMLYN_ONE_SIDED_HPP

#include "lower.hpp"

namespace hamlyn {

using strided = hamlyn_strided;

// Counts operations that ended (initiator::count). Any thread may use it.
class completion_counter : public detail::handle<hamlyn_counter, hamlyn_close_counter> {
  public:
    completion_counter() : handle(detail::found<hamlyn_counter *>(hamlyn_open_counter)) {}

    std::uint64_t completed() const { return counts().first; }
    std::uint64_t failed() const { return counts().second; }
    // Waits until so many have ended, well or not; whether they have.
    bool await(const manager &of, std::uint64_t ended, wait limit = wait::forever()) {
        return detail::attempt_in_time(hamlyn_await_completions, of.get(), get(), ended, limit.ns()).value();
    }

  private:
    std::pair<std::uint64_t, std::uint64_t> counts() const {
        std::uint64_t completed, failed;
        detail::attempt(hamlyn_counts, get(), &completed, &failed).value();
        return {completed, failed};
    }
};

// Access to the memory that a ticket names. `read`, `put` and `change` wait until the operation is complete; those that begin with `begin`
// return its number, and several may be outstanding. What they read lands in the initiator's own memory, of `landing_bytes`.
class initiator : public detail::handle<hamlyn_initiator, hamlyn_close_initiator> {
  public:
    using handle::handle;
    initiator(const manager &of, const hamlyn::ticket &given, std::uint64_t landing_bytes = 0, wait limit = wait::forever())
        : handle(detail::found<hamlyn_initiator *>(hamlyn_open_initiator, of.get(), &given, landing_bytes, limit.ns())) {}

    void read(std::uint64_t offset, void *into, std::size_t size, wait limit = wait::forever()) {
        detail::attempt(hamlyn_read, get(), offset, into, size, limit.ns()).value();
    }
    template <class T>
    T read(std::uint64_t offset, wait limit = wait::forever()) {
        return detail::value_from<T>([&](void *into, std::size_t size) { read(offset, into, size, limit); });
    }
    // A word, which is not torn.
    std::uint64_t read_word(std::uint64_t offset, wait limit = wait::forever()) {
        return detail::found<std::uint64_t>(hamlyn_read_word, get(), offset, limit.ns());
    }
    void put(std::uint64_t offset, bytes data, wait limit = wait::forever()) {
        detail::attempt(hamlyn_put, get(), offset, data.data(), data.size(), limit.ns()).value();
    }
    std::uint64_t change(std::uint64_t offset, const atomic_change &change, wait limit = wait::forever()) {
        return detail::found<std::uint64_t>(hamlyn_change, get(), offset, &change, limit.ns());
    }
    std::uint64_t add(std::uint64_t offset, std::uint64_t operand, wait limit = wait::forever()) {
        return change(offset, {HAMLYN_CHANGE_ADD, 64, operand, 0}, limit);
    }

    // An operation that was begun: its number, until it is finished.
    using operation = std::uint32_t;

    operation begin_read(std::uint64_t offset, std::uint64_t landing_offset, std::uint64_t size, wait limit = wait::forever()) {
        return detail::found<operation>(hamlyn_begin_read, get(), offset, landing_offset, size, limit.ns());
    }
    operation begin_read_word(std::uint64_t offset, wait limit = wait::forever()) {
        return detail::found<operation>(hamlyn_begin_read_word, get(), offset, limit.ns());
    }
    operation begin_put(std::uint64_t offset, bytes data, wait limit = wait::forever()) {
        return detail::found<operation>(hamlyn_begin_put, get(), offset, data.data(), data.size(), limit.ns());
    }
    operation begin_change(std::uint64_t offset, const atomic_change &change, wait limit = wait::forever()) {
        return detail::found<operation>(hamlyn_begin_atomic, get(), offset, &change, limit.ns());
    }
    operation begin_read(const strided &pieces, std::uint64_t landing_offset, wait limit = wait::forever()) {
        return detail::found<operation>(hamlyn_begin_read_strided, get(), &pieces, landing_offset, limit.ns());
    }
    operation begin_put(const strided &pieces, bytes data, wait limit = wait::forever()) {
        return detail::found<operation>(hamlyn_begin_put_strided, get(), &pieces, data.data(), data.size(), limit.ns());
    }
    // Pieces of `piece_bytes` each, at places of their own.
    operation begin_read(const std::uint64_t *offsets, std::size_t pieces, std::uint64_t piece_bytes, std::uint64_t landing_offset,
                         wait limit = wait::forever()) {
        return detail::found<operation>(hamlyn_begin_read_indexed, get(), offsets, pieces, piece_bytes, landing_offset, limit.ns());
    }
    operation begin_put(const std::uint64_t *offsets, std::size_t pieces, std::uint64_t piece_bytes, bytes data,
                        wait limit = wait::forever()) {
        return detail::found<operation>(hamlyn_begin_put_indexed, get(), offsets, pieces, piece_bytes, data.data(), data.size(),
                                        limit.ns());
    }
    // Whether it is complete; throws what it failed by.
    bool finish(operation of, wait limit = wait::forever()) {
        return detail::attempt_in_time(hamlyn_finish, get(), of, limit.ns()).value();
    }
    // What a word was before its change, or what was read; nothing if the operation is not complete in time.
    std::optional<std::uint64_t> finish_word(operation of, wait limit = wait::forever()) {
        std::uint64_t value = 0;
        const bool is_done = detail::attempt_in_time(hamlyn_finish_word, get(), of, limit.ns(), &value).value();
        return is_done ? std::optional<std::uint64_t>(value) : std::nullopt;
    }
    bool finish_all(wait limit = wait::forever()) {
        return detail::attempt_in_time(hamlyn_finish_all, get(), limit.ns()).value();
    }
    std::size_t outstanding() const { return detail::found<std::size_t>(hamlyn_outstanding, get()); }
    // Copies what was read.
    void landed(std::uint64_t landing_offset, void *into, std::size_t size) const {
        detail::attempt(hamlyn_landed, get(), landing_offset, into, size).value();
    }
    // Its end is counted. A completion_queue (hamlyn/completions.hpp) also tells the result.
    void count(operation of, const completion_counter &by) {
        detail::attempt(hamlyn_count_completion, get(), of, by.get()).value();
    }
};

} // namespace hamlyn

#endif // HAMLYN_ONE_SIDED_HPP
