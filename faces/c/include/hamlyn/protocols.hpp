// The protocols of hamlyn.hpp: datagrams, mailboxes, streams, tagged writes, services and groups.

#ifndef HAMLYN_PROTOCOLS_HPP
#define HAMLYN_PROTOCOLS_HPP

#include "core.hpp"

#include <vector>

namespace hamlyn {

// A datagram, in its receiver's buffer. When it goes, the receiver is ready for the next.
class datagram : public detail::guard<hamlyn_datagram_receiver, hamlyn_release_datagram> {
  public:
    using guard::guard;

    // Who sent it; nothing if that is not known.
    std::optional<peer> sender() const {
        peer who;
        if (hamlyn_datagram_peer(guard::end(), &who, nullptr) != HAMLYN_OK) {
            return std::nullopt;
        }
        return who;
    }
    // Where its sender awaits an answer, if it does.
    std::optional<ticket> reply_ticket() const {
        ticket where;
        if (hamlyn_datagram_reply_ticket(guard::end(), &where, nullptr) != HAMLYN_OK) {
            return std::nullopt;
        }
        return where;
    }
};

class datagram_receiver : public detail::handle<hamlyn_datagram_receiver, hamlyn_close_datagram_receiver>,
                          public detail::messages<datagram_receiver, datagram> {
  public:
    using handle::handle;

    result<std::optional<datagram>> try_recv(wait limit) { return detail::received<datagram>(hamlyn_recv_datagram, get(), limit); }
    std::optional<datagram> recv(wait limit = wait::forever()) { return try_recv(limit).value(); }
    hamlyn::ticket ticket() const {
        return detail::found<hamlyn::ticket>(hamlyn_datagram_ticket, get());
    }
    void revoke() {
        detail::attempt(hamlyn_revoke_datagram, get()).value();
    }
    // Ready again after a message that was cut; a message must not be held.
    void reset() { detail::attempt(hamlyn_reset_datagram, get()).value(); }
    hamlyn_slot_info info() const { return detail::found<hamlyn_slot_info>(hamlyn_get_datagram_info, get()); }
};

class datagram_sender : public detail::handle<hamlyn_datagram_sender, hamlyn_close_datagram_sender> {
  public:
    using handle::handle;

    done try_send(bytes data, wait limit = wait::forever()) {
        return detail::attempt(hamlyn_send_datagram, get(), data.data(), data.size(), limit.ns());
    }
    void send(bytes data, wait limit = wait::forever()) { try_send(data, limit).value(); }
    void send_to(std::uint32_t offset, bytes data, const hamlyn::ticket *reply = nullptr, wait limit = wait::forever()) {
        detail::attempt(hamlyn_send_datagram_to, get(), offset, data.data(), data.size(), reply, limit.ns()).value();
    }
    done try_fence(wait limit) {
        return detail::attempt(hamlyn_fence_datagram, get(), limit.ns());
    }
    void fence(wait limit = wait::forever()) { try_fence(limit).value(); }
};

// A message of a mailbox. Valid until the receiver is asked for the next one; nothing is given back when it goes.
class mail : public detail::message {
  public:
    mail(hamlyn_mailbox_receiver *end, hamlyn_message from) : message(from), end_(end) {}

    // Its sender; nothing if that is not known.
    std::optional<peer> sender() const {
        peer who;
        if (hamlyn_mail_peer(end_, &who, nullptr) != HAMLYN_OK) {
            return std::nullopt;
        }
        return who;
    }

  private:
    hamlyn_mailbox_receiver *end_;
};

class mailbox_receiver : public detail::handle<hamlyn_mailbox_receiver, hamlyn_close_mailbox_receiver>,
                         public detail::messages<mailbox_receiver, mail> {
  public:
    using handle::handle;

    result<std::optional<mail>> try_recv(wait limit) { return detail::received<mail>(hamlyn_recv_mail, get(), limit); }
    std::optional<mail> recv(wait limit = wait::forever()) { return try_recv(limit).value(); }
    hamlyn::ticket ticket() const { return detail::found<hamlyn::ticket>(hamlyn_mailbox_ticket, get()); }
    // Messages that wait stay.
    void revoke() { detail::attempt(hamlyn_revoke_mailbox, get()).value(); }
    hamlyn_mailbox_info info() const { return detail::found<hamlyn_mailbox_info>(hamlyn_get_mailbox_info, get()); }
    std::uint64_t refusals(std::uint32_t reason) const {
        return detail::found<std::uint64_t>(hamlyn_mailbox_refusals, get(), reason);
    }
};

class mailbox_sender : public detail::handle<hamlyn_mailbox_sender, hamlyn_close_mailbox_sender> {
  public:
    using handle::handle;

    done try_send(bytes data, wait limit = wait::forever()) {
        return detail::attempt(hamlyn_send_mail, get(), data.data(), data.size(), limit.ns());
    }
    void send(bytes data, wait limit = wait::forever()) { try_send(data, limit).value(); }
    // Bytes of the longest message that the link takes.
    std::size_t message_bytes_max() const { return detail::found<std::size_t>(hamlyn_mail_bytes_max, get()); }
    done try_fence(wait limit) { return detail::attempt(hamlyn_fence_mailbox, get(), limit.ns()); }
    void fence(wait limit = wait::forever()) { try_fence(limit).value(); }
};

// A record that is kept beyond the next one; its memory goes back when it is closed, at the next call of the stream.
using kept_record = detail::handle<hamlyn_kept_record, hamlyn_close_kept_record>;

// A record, where it landed.
class record : public detail::guard<hamlyn_stream_receiver, hamlyn_release_record> {
  public:
    using guard::guard;

    kept_record keep() {
        return kept_record(detail::found<hamlyn_kept_record *>(hamlyn_keep_record, taken()));
    }
};

class stream_receiver : public detail::handle<hamlyn_stream_receiver, hamlyn_close_stream_receiver>,
                        public detail::messages<stream_receiver, record> {
  public:
    using handle::handle;

    result<std::optional<record>> try_recv(wait limit) { return detail::received<record>(hamlyn_recv_record, get(), limit); }
    // Nothing if none came in time. Throws HAMLYN_FINISHED when the sender has closed; a loop over the stream ends then.
    std::optional<record> recv(wait limit = wait::forever()) { return try_recv(limit).value(); }
    // The bytes of a record that is kept. No other may be held.
    bytes view(const kept_record &kept) const {
        const auto found = detail::found<hamlyn_message>(hamlyn_view_kept_record, get(), kept.get());
        return bytes(found.data, found.length_bytes);
    }
    peer sender() const {
        return detail::found<peer>(hamlyn_stream_peer, get());
    }
    // What the sender grows from (manager::grow_stream), if it is not to find the stream by a name.
    hamlyn::seed seed() const { return detail::found<hamlyn::seed>(hamlyn_stream_seed, get()); }
    // Gives the memory of kept records that were closed back at once, and not at the next call.
    void reclaim() { detail::attempt(hamlyn_reclaim_records, get()).value(); }
    // The slot of its memory, and how much of that there is.
    std::pair<hamlyn_slot_info, std::uint64_t> info() const {
        hamlyn_slot_info info;
        std::uint64_t memory_bytes;
        detail::attempt(hamlyn_get_stream_info, get(), &info, &memory_bytes).value();
        return {info, memory_bytes};
    }
};

class stream_sender : public detail::handle<hamlyn_stream_sender, hamlyn_close_stream_sender> {
  public:
    using handle::handle;

    done try_send(bytes data, wait limit = wait::forever()) {
        return detail::attempt(hamlyn_send_record, get(), data.data(), data.size(), limit.ns());
    }
    void send(bytes data, wait limit = wait::forever()) { try_send(data, limit).value(); }
    done try_flush(wait limit) { return detail::attempt(hamlyn_flush_stream, get(), limit.ns()); }
    void flush(wait limit = wait::forever()) { try_flush(limit).value(); }
    done try_fence(wait limit) { return detail::attempt(hamlyn_fence_stream, get(), limit.ns()); }
    void fence(wait limit = wait::forever()) { try_fence(limit).value(); }
    // Says that the stream is whole.
    done try_finish(wait limit) { return detail::attempt(hamlyn_finish_stream, get(), limit.ns()); }
    void finish(wait limit = wait::forever()) { try_finish(limit).value(); }
};

class tag_receiver : public detail::handle<hamlyn_tag_receiver, hamlyn_close_tag_receiver> {
  public:
    using handle::handle;

    result<std::optional<std::uint64_t>> try_recv(wait limit) {
        std::uint64_t tag;
        return detail::attempt_in_time(hamlyn_recv_tag, get(), limit.ns(), &tag).map([&](bool came) {
            return came ? std::optional<std::uint64_t>(tag) : std::optional<std::uint64_t>();
        });
    }
    std::optional<std::uint64_t> recv(wait limit = wait::forever()) { return try_recv(limit).value(); }
    // Waits for that very tag; whether it came in time.
    bool recv(std::uint64_t tag, wait limit) {
        return detail::attempt_in_time(hamlyn_recv_specific_tag, get(), tag, limit.ns()).value();
    }
    // Who sent the tag that came last; nothing if that is not known.
    std::optional<peer> sender() const {
        peer who;
        if (hamlyn_tag_peer(get(), &who, nullptr) != HAMLYN_OK) {
            return std::nullopt;
        }
        return who;
    }
    void revoke() { detail::attempt(hamlyn_revoke_area, get()).value(); }
    hamlyn_slot_info info() const { return detail::found<hamlyn_slot_info>(hamlyn_get_tags_info, get()); }
    std::uint64_t lost() const { return detail::found<std::uint64_t>(hamlyn_tags_lost, get()); }
    void read(std::uint64_t offset, void *into, std::size_t size) const {
        detail::attempt(hamlyn_read_area, get(), offset, into, size).value();
    }
    // A value of the area.
    template <class T>
    T read(std::uint64_t offset) const {
        return detail::value_from<T>([&](void *into, std::size_t size) { read(offset, into, size); });
    }
    void write(std::uint64_t offset, bytes data) {
        detail::attempt(hamlyn_write_area, get(), offset, data.data(), data.size()).value();
    }
    hamlyn::ticket ticket(std::uint64_t offset, std::uint64_t size) const {
        return detail::found<hamlyn::ticket>(hamlyn_area_ticket, get(), offset, size);
    }
};

class tag_sender : public detail::handle<hamlyn_tag_sender, hamlyn_close_tag_sender> {
  public:
    using handle::handle;

    done try_send(std::uint64_t offset, bytes data, std::uint64_t tag, wait limit) {
        return detail::attempt(hamlyn_send_tag, get(), offset, data.data(), data.size(), tag, limit.ns());
    }
    void send(std::uint64_t offset, bytes data, std::uint64_t tag, wait limit = wait::forever()) {
        try_send(offset, data, tag, limit).value();
    }
    done try_fence(wait limit) { return detail::attempt(hamlyn_fence_tags, get(), limit.ns()); }
    void fence(wait limit = wait::forever()) { try_fence(limit).value(); }
};

// A call that is answered later.
using deferred_call = detail::handle<hamlyn_deferred_call, hamlyn_close_deferred_call>;

// A call of a client: the bytes of its request. One that goes without a reply is dropped, and its client told so.
class service_call : public detail::guard<hamlyn_service, hamlyn_drop_call> {
  public:
    using guard::guard;

    std::optional<peer> client() const {
        peer who;
        if (hamlyn_call_peer(guard::end(), &who, nullptr) != HAMLYN_OK) {
            return std::nullopt;
        }
        return who;
    }
    done try_reply(bytes data) { return detail::attempt(hamlyn_reply, taken(), data.data(), data.size()); }
    void reply(bytes data) { try_reply(data).value(); }
    deferred_call defer() {
        return deferred_call(detail::found<hamlyn_deferred_call *>(hamlyn_defer_call, taken()));
    }
    // Takes away what the client has at this service, this call included.
    void dismiss() {
        detail::attempt(hamlyn_dismiss_client, taken()).value();
    }
};

class service : public detail::handle<hamlyn_service, hamlyn_close_service>, public detail::messages<service, service_call> {
  public:
    using handle::handle;

    result<std::optional<service_call>> try_recv(wait limit) { return detail::received<service_call>(hamlyn_next_call, get(), limit); }
    std::optional<service_call> recv(wait limit = wait::forever()) { return try_recv(limit).value(); }
    void reply(deferred_call call, bytes data) {
        detail::attempt(hamlyn_reply_deferred, get(), call.release(), data.data(), data.size()).value();
    }
    // The bytes of a request that is answered later.
    bytes request(const deferred_call &call) const {
        const auto found = detail::found<hamlyn_message>(hamlyn_deferred_request, get(), call.get());
        return bytes(found.data, found.length_bytes);
    }
    // Clients that broke the rules of the protocol.
    std::uint64_t misbehaved() const { return detail::found<std::uint64_t>(hamlyn_service_misbehaved, get()); }
};

class reply : public detail::guard<hamlyn_client, hamlyn_release_reply> {
  public:
    using guard::guard;
};

// A call whose reply has not been taken; it is cancelled when this goes.
using pending_call = detail::handle<hamlyn_pending_call, hamlyn_close_pending_call>;

class client : public detail::handle<hamlyn_client, hamlyn_close_client> {
  public:
    using handle::handle;

    result<reply> try_call(bytes request, wait limit) {
        hamlyn_message message;
        auto called = detail::attempt(hamlyn_call, get(), request.data(), request.size(), limit.ns(), &message);
        return std::move(called).map([&](std::monostate) { return reply(get(), message); });
    }
    reply call(bytes request, wait limit = wait::forever()) { return try_call(request, limit).value(); }
    result<pending_call> try_start(bytes request, wait limit) {
        hamlyn_pending_call *pending = nullptr;
        auto begun = detail::attempt(hamlyn_start_call, get(), request.data(), request.size(), limit.ns(), &pending);
        return std::move(begun).map([&](std::monostate) { return pending_call(pending); });
    }
    pending_call start(bytes request, wait limit = wait::forever()) { return try_start(request, limit).value(); }
    // The reply to a call that was started; nothing if it did not come in time.
    result<std::optional<reply>> try_take(const pending_call &pending, wait limit) {
        hamlyn_message message;
        return detail::attempt_in_time(hamlyn_take_reply, get(), pending.get(), limit.ns(), &message).map([&](bool came) {
            return came ? std::optional<reply>(std::in_place, get(), message) : std::optional<reply>();
        });
    }
    std::optional<reply> take(const pending_call &pending, wait limit = wait::forever()) {
        return try_take(pending, limit).value();
    }
    // How many calls may be outstanding, and how long a request may be.
    std::pair<std::uint16_t, std::uint32_t> limits() const {
        std::uint16_t outstanding_max;
        std::uint32_t request_bytes_max;
        detail::attempt(hamlyn_client_limits, get(), &outstanding_max, &request_bytes_max).value();
        return {outstanding_max, request_bytes_max};
    }
};

class group_receiver : public detail::handle<hamlyn_group_receiver, hamlyn_close_group_receiver> {
  public:
    using handle::handle;

    void begin(const std::uint64_t *lengths, std::size_t members) {
        detail::attempt(hamlyn_begin_group, get(), lengths, members).value();
    }
    // The same, with the whole place as one member, which is offered to nobody (divided, manager::grow_group).
    member begin() { return detail::found<member>(hamlyn_begin_member, get()); }
    // The whole place, when everything has come; valid until the next round begins. Nothing if not in time.
    result<std::optional<bytes>> try_recv(wait limit) {
        hamlyn_message message;
        return detail::attempt_in_time(hamlyn_recv_group, get(), limit.ns(), &message).map([&](bool came) {
            return came ? std::optional<bytes>(std::in_place, message.data, message.length_bytes) : std::optional<bytes>();
        });
    }
    std::optional<bytes> recv(wait limit = wait::forever()) { return try_recv(limit).value(); }
    hamlyn_slot_info info() const { return detail::found<hamlyn_slot_info>(hamlyn_get_group_info, get()); }
};

class group_sender : public detail::handle<hamlyn_group_sender, hamlyn_close_group_sender> {
  public:
    using handle::handle;

    void send(std::uint64_t offset, bytes data, wait limit = wait::forever()) { send(offset, data, 0, limit); }
    void send_last(std::uint64_t offset, bytes data, wait limit = wait::forever()) { send(offset, data, 1, limit); }
    void fence(wait limit = wait::forever()) {
        detail::attempt(hamlyn_fence_group, get(), limit.ns()).value();
    }
    // Closes it, and gives what is left of its member, to be divided among delegates. HAMLYN_FINISHED if all of it was sent: closed as well.
    member into_member() && {
        member left{};
        auto taken = detail::attempt(hamlyn_take_member, get(), &left);
        if (taken || taken.code() == HAMLYN_FINISHED) {
            release();
        }
        std::move(taken).value();
        return left;
    }

  private:
    void send(std::uint64_t offset, bytes data, std::uint32_t is_last, wait limit) {
        detail::attempt(hamlyn_send_part, get(), offset, data.data(), data.size(), is_last, limit.ns()).value();
    }
};

// Divides a member into consecutive parts of these lengths.
inline std::vector<member> divided(const member &of, const std::vector<std::uint64_t> &lengths) {
    std::vector<member> parts(lengths.size());
    detail::attempt(hamlyn_divide_member, &of, lengths.data(), lengths.size(), parts.data()).value();
    return parts;
}

// An end point that carries values of one type, which can be sent as it lies in memory: checked when compiled.
template <class T, class E>
class typed {
    static_assert(std::is_trivially_copyable_v<T>, "only what is trivially copyable can be sent as it lies in memory");

  public:
    explicit typed(E end) : end_(std::move(end)) {}

    // Sends a value, of an end that sends.
    done try_send(const T &value, wait limit) { return end_.try_send(value_of(value), limit); }
    void send(const T &value, wait limit = wait::forever()) { try_send(value, limit).value(); }
    // Receives a value, of an end that receives; nothing if none came in time. What is not as long as one is an error.
    result<std::optional<T>> try_recv(wait limit) {
        auto came = end_.try_recv(limit);
        if (!came) {
            return std::move(came).map([](auto) { return std::optional<T>(); });
        }
        auto message = std::move(came).value();
        if (!message) {
            return std::optional<T>();
        }
        auto value = message->template as<T>();
        if (!value) {
            hamlyn_error failure{};
            failure.status = HAMLYN_MALFORMED;
            std::strncpy(failure.text, "a message is not as long as a value of its type: both programs must name the same type",
                         sizeof failure.text - 1);
            return failure;
        }
        return value;
    }
    std::optional<T> recv(wait limit = wait::forever()) { return try_recv(limit).value(); }
    E &bytes_end() noexcept { return end_; }

  private:
    E end_;
};

} // namespace hamlyn

#endif // HAMLYN_PROTOCOLS_HPP
