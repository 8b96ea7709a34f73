// Lanes of hamlyn.hpp: buffers for the messages of one peer, and pools of buffers for those of many.

#ifndef HAMLYN_LANES_HPP
#define HAMLYN_LANES_HPP

#include "completions.hpp"

namespace hamlyn {

using lane_options = hamlyn_lane_options;
using lane_seed = hamlyn_lane_seed;
using lane_sender_info = hamlyn_lane_sender_info;
using shared_lane_options = hamlyn_shared_lane_options;
using shared_lane_info = hamlyn_shared_lane_info;

namespace detail {

// A message in a buffer of a lane, which is given back when this goes. Any number may be held at a time.
template <class H, status (*GiveBack)(H *, std::uint32_t, hamlyn_error *)>
class lane_message : public message {
  public:
    lane_message(H *lane, hamlyn_lane_message from) : message({from.data, from.length_bytes}), lane_(lane), from_(from) {}
    lane_message(lane_message &&other) noexcept
        : message(other.message_), lane_(std::exchange(other.lane_, nullptr)), from_(other.from_) {}
    lane_message &operator=(lane_message &&other) noexcept {
        if (this != &other) {
            give_back();
            message_ = other.message_;
            lane_ = std::exchange(other.lane_, nullptr);
            from_ = other.from_;
        }
        return *this;
    }
    ~lane_message() { give_back(); }

    void give_back() noexcept {
        if (lane_ != nullptr) {
            GiveBack(std::exchange(lane_, nullptr), from_.buffer, nullptr);
        }
    }
    // The number that its sender gave it.
    std::uint32_t tag() const noexcept { return from_.tag; }
    // The number of its buffer.
    std::uint32_t buffer() const noexcept { return from_.buffer; }
    // The link over which it came.
    std::uint64_t link() const noexcept { return from_.link; }

  private:
    H *lane_;
    hamlyn_lane_message from_;
};

template <class M, class H>
result<std::optional<M>> received_in_lane(status (*receive)(H *, std::int64_t, hamlyn_lane_message *, hamlyn_error *), H *lane,
                                          wait limit) {
    hamlyn_lane_message message;
    return attempt_in_time(receive, lane, limit.ns(), &message).map([&](bool came) {
        return came ? std::optional<M>(std::in_place, lane, message) : std::optional<M>();
    });
}

} // namespace detail

// The receiving end of a lane. Its messages must not outlive it.
class lane : public detail::handle<hamlyn_lane, hamlyn_close_lane> {
  public:
    using handle::handle;
    using message = detail::lane_message<hamlyn_lane, hamlyn_give_back_lane>;
    explicit lane(const manager &of, const lane_options &options = {})
        : handle(detail::found<hamlyn_lane *>(hamlyn_open_lane, of.get(), &options)) {}

    // The bytes that its one sender needs.
    lane_seed seed() const { return detail::found<lane_seed>(hamlyn_get_lane_seed, get()); }
    result<std::optional<message>> try_recv(wait limit) { return detail::received_in_lane<message>(hamlyn_recv_lane, get(), limit); }
    // The next message; nothing if none came in time. Throws HAMLYN_FINISHED after all messages of a sender that has ended.
    std::optional<message> recv(wait limit = wait::forever()) { return try_recv(limit).value(); }
};

// A message that was sent and for which no credit came.
struct kept_message {
    std::uint32_t tag = 0;
    std::uint32_t buffer = 0;
    std::string data;
};

// The sending end of a lane.
class lane_sender : public detail::handle<hamlyn_lane_sender, hamlyn_close_lane_sender> {
  public:
    using handle::handle;
    lane_sender(const manager &of, const lane_seed &seed, wait limit = wait::forever())
        : handle(detail::found<hamlyn_lane_sender *>(hamlyn_connect_lane, of.get(), &seed, limit.ns())) {}

    // Sends to the next free buffer: its number.
    result<std::uint32_t> try_send(std::uint32_t tag, bytes data, wait limit) {
        return sent(hamlyn_send_lane, tag, data, limit);
    }
    std::uint32_t send(std::uint32_t tag, bytes data, wait limit = wait::forever()) { return try_send(tag, data, limit).value(); }
    // The same, and a copy is kept until credit comes for it.
    result<std::uint32_t> try_send_kept(std::uint32_t tag, bytes data, wait limit) {
        return sent(hamlyn_send_lane_kept, tag, data, limit);
    }
    std::uint32_t send_kept(std::uint32_t tag, bytes data, wait limit = wait::forever()) {
        return try_send_kept(tag, data, limit).value();
    }
    // Sends to that buffer, as soon as it is free.
    done try_send_to(std::uint32_t buffer, std::uint32_t tag, bytes data, wait limit) {
        return detail::attempt(hamlyn_send_lane_to, get(), buffer, tag, data.data(), data.size(), limit.ns());
    }
    void send_to(std::uint32_t buffer, std::uint32_t tag, bytes data, wait limit = wait::forever()) {
        try_send_to(buffer, tag, data, limit).value();
    }
    // The oldest message that was to be kept and for which no credit came; it is kept no longer.
    std::optional<kept_message> next_kept() {
        hamlyn_lane_message found;
        hamlyn_error failure;
        switch (hamlyn_next_kept(get(), &found, &failure)) {
        case HAMLYN_OK:
            return kept_message{found.tag, found.buffer, std::string(static_cast<const char *>(found.data), found.length_bytes)};
        case HAMLYN_NOT_FOUND:
            return std::nullopt;
        default:
            throw error(failure);
        }
    }
    lane_sender_info info() const { return detail::found<lane_sender_info>(hamlyn_get_lane_sender_info, get()); }
    bool is_free(std::uint32_t buffer) const {
        return detail::found<std::uint32_t>(hamlyn_is_lane_buffer_free, get(), buffer) != 0;
    }

  private:
    template <class F>
    result<std::uint32_t> sent(F send, std::uint32_t tag, bytes data, wait limit) {
        std::uint32_t buffer = 0;
        return detail::attempt(send, get(), tag, data.data(), data.size(), limit.ns(), &buffer).map([&](auto) { return buffer; });
    }
};

// One pool of buffers for many peers, each of which has a target with the ticket of this, and sends to it with the tag as the message's word.
class shared_lane : public detail::handle<hamlyn_shared_lane, hamlyn_close_shared_lane> {
  public:
    using handle::handle;
    using message = detail::lane_message<hamlyn_shared_lane, hamlyn_give_back_shared_lane>;
    explicit shared_lane(const manager &of, const shared_lane_options &options = {})
        : handle(detail::found<hamlyn_shared_lane *>(hamlyn_open_shared_lane, of.get(), &options)) {}

    hamlyn::ticket ticket() const { return detail::found<hamlyn::ticket>(hamlyn_shared_lane_ticket, get()); }
    result<std::optional<message>> try_recv(wait limit) {
        return detail::received_in_lane<message>(hamlyn_recv_shared_lane, get(), limit);
    }
    // The next message; nothing if none came in time, or the program has all buffers.
    std::optional<message> recv(wait limit = wait::forever()) { return try_recv(limit).value(); }
    shared_lane_info info() const { return detail::found<shared_lane_info>(hamlyn_get_shared_lane_info, get()); }
    std::uint64_t refusals(std::uint32_t reason) const {
        return detail::found<std::uint64_t>(hamlyn_shared_lane_refusals, get(), reason);
    }
};

inline hamlyn_source source_of(const shared_lane &of) { return {HAMLYN_SOURCE_SHARED_LANE, of.get()}; }

} // namespace hamlyn

#endif // HAMLYN_LANES_HPP
