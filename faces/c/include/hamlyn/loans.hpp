// Loans of hamlyn.hpp: messages that are written and read in place.

#ifndef HAMLYN_LOANS_HPP
#define HAMLYN_LOANS_HPP

#include "core.hpp"

namespace hamlyn {

// A message to be written in place. One that goes unpublished is given back.
class loan {
  public:
    loan(hamlyn_publisher *publisher, void *data, std::size_t size) : publisher_(publisher), data_(data), size_(size) {}
    loan(loan &&other) noexcept
        : publisher_(std::exchange(other.publisher_, nullptr)), data_(other.data_), size_(other.size_) {}
    loan &operator=(loan &&) = delete;
    ~loan() {
        if (publisher_ != nullptr) {
            hamlyn_drop_loan(publisher_, nullptr);
        }
    }
    std::byte *data() const noexcept { return static_cast<std::byte *>(data_); }
    std::size_t size() const noexcept { return size_; }
#if __cplusplus >= 202002L
    std::span<std::byte> span() const noexcept { return {data(), size()}; }
#endif
    // Announces it; how many readers got it.
    std::size_t publish(wait limit = wait::forever()) {
        return detail::found<std::size_t>(hamlyn_publish, std::exchange(publisher_, nullptr), limit.ns());
    }

  private:
    hamlyn_publisher *publisher_;
    void *data_;
    std::size_t size_;
};

class publisher : public detail::handle<hamlyn_publisher, hamlyn_close_publisher> {
  public:
    using handle::handle;

    result<hamlyn::loan> try_loan(std::size_t size, wait limit) {
        void *data = nullptr;
        auto lent = detail::attempt(hamlyn_loan, get(), size, limit.ns(), &data);
        return std::move(lent).map([&](std::monostate) { return hamlyn::loan(get(), data, size); });
    }
    hamlyn::loan loan(std::size_t size, wait limit = wait::forever()) { return try_loan(size, limit).value(); }
    void flush(wait limit = wait::forever()) { detail::attempt(hamlyn_flush_publisher, get(), limit.ns()).value(); }
    hamlyn_publisher_info info() const {
        return detail::found<hamlyn_publisher_info>(hamlyn_get_publisher_info, get());
    }
    // Takes back what readers have released, and lets in those that connected.
    void poll() { detail::attempt(hamlyn_poll_publisher, get()).value(); }
    // Waits until a message can be published without waiting; whether one can.
    bool await_room(wait limit = wait::forever()) {
        return detail::attempt_in_time(hamlyn_await_room, get(), limit.ns()).value();
    }
    void await_readers(std::size_t readers, wait limit = wait::forever()) {
        detail::attempt(hamlyn_await_readers, get(), readers, limit.ns()).value();
    }
};

// A message that is kept beyond the next one; it goes back when it is closed, at the next call of the subscriber.
class kept_sample : public detail::handle<hamlyn_kept_sample, hamlyn_close_kept_sample> {
  public:
    using handle::handle;

    std::size_t size() const {
        std::size_t size;
        detail::attempt(hamlyn_get_kept_sample, get(), &size, static_cast<std::uint64_t *>(nullptr)).value();
        return size;
    }
    void read(std::size_t offset, void *into, std::size_t size) const {
        detail::attempt(hamlyn_read_kept_sample, get(), offset, into, size).value();
    }
};

// A message that was published. Its publisher may change it: copy it once, and check the copy.
class sample {
  public:
    sample(hamlyn_subscriber *subscriber, std::size_t size, std::uint64_t number)
        : subscriber_(subscriber), size_(size), number_(number) {}
    sample(sample &&other) noexcept
        : subscriber_(std::exchange(other.subscriber_, nullptr)), size_(other.size_), number_(other.number_) {}
    sample &operator=(sample &&) = delete;
    ~sample() {
        if (subscriber_ != nullptr) {
            hamlyn_release_sample(subscriber_, nullptr);
        }
    }
    std::size_t size() const noexcept { return size_; }
    std::uint64_t number() const noexcept { return number_; }
    void read(std::size_t offset, void *into, std::size_t size) const {
        detail::attempt(hamlyn_read_sample, subscriber_, offset, into, size).value();
    }
    kept_sample keep() {
        return kept_sample(detail::found<hamlyn_kept_sample *>(hamlyn_keep_sample, std::exchange(subscriber_, nullptr)));
    }

  private:
    hamlyn_subscriber *subscriber_;
    std::size_t size_;
    std::uint64_t number_;
};

class subscriber : public detail::handle<hamlyn_subscriber, hamlyn_close_subscriber> {
  public:
    using handle::handle;

    result<std::optional<sample>> try_recv(wait limit) {
        std::size_t size;
        std::uint64_t number;
        return detail::attempt_in_time(hamlyn_recv_sample, get(), limit.ns(), &size, &number).map([&](bool came) {
            return came ? std::optional<sample>(std::in_place, get(), size, number) : std::optional<sample>();
        });
    }
    std::optional<sample> recv(wait limit = wait::forever()) { return try_recv(limit).value(); }
    // Messages that were published and not received, because this subscriber was slow.
    std::uint64_t lost() const { return detail::found<std::uint64_t>(hamlyn_samples_lost, get()); }
    // Gives kept messages that were closed back at once, and not at the next call.
    void reclaim() { detail::attempt(hamlyn_reclaim_samples, get()).value(); }
    hamlyn_subscriber_info info() const { return detail::found<hamlyn_subscriber_info>(hamlyn_get_subscriber_info, get()); }
    peer sender() const { return detail::found<peer>(hamlyn_publisher_peer, get()); }
};

} // namespace hamlyn

#endif // HAMLYN_LOANS_HPP
