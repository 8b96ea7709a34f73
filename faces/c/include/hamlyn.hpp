// Hamlyn for C++17 and later: classes over hamlyn.h, in a header alone.
//
// A manager and its end points are objects that can be moved and close themselves. What is received is a guard: it reads as its
// bytes, where they landed, and gives their memory back when it goes. A guard must not outlive its end point, nor the end point be
// moved or used for another message while a guard of it lives.
//
// Each call that can fail has two forms: `send` throws hamlyn::error, `try_send` returns a hamlyn::result and throws
// nothing. Where nothing coming in time is no error, what is received is an optional.
//
//     hamlyn::manager alice("alice");
//     auto inbox = alice.bind_datagram("inbox", 4096);
//     for (auto &&datagram : inbox) std::cout << datagram.text() << '\n';
//
//     hamlyn::manager me;
//     me.connect_datagram("alice/inbox").send("hello");

#ifndef HAMLYN_HPP
#define HAMLYN_HPP

#include "hamlyn.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace hamlyn {

using status = hamlyn_status;
using peer = hamlyn_peer;
using ticket = hamlyn_ticket;

// What went wrong: a status for programs, and a text with the remedy for people.
class error : public std::runtime_error {
  public:
    explicit error(const hamlyn_error &from) : std::runtime_error(from.text), status_(from.status) {}

    status code() const noexcept { return status_; }

  private:
    status status_;
};

// A value, or what went wrong.
template <class T>
class [[nodiscard]] result {
  public:
    result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
    result(const hamlyn_error &failure) : held_(std::in_place_index<1>, failure) {}

    bool has_value() const noexcept { return held_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    // The value; throws hamlyn::error if there is none.
    T &&value() && {
        if (auto *failure = std::get_if<1>(&held_)) {
            throw hamlyn::error(*failure);
        }
        return std::move(std::get<0>(held_));
    }
    // What `change` makes of the value; the same failure if there is none.
    template <class F>
    auto map(F change) && -> result<decltype(change(std::declval<T>()))> {
        if (auto *failure = std::get_if<1>(&held_)) {
            return *failure;
        }
        return change(std::move(std::get<0>(held_)));
    }
    T &operator*() { return std::get<0>(held_); }
    T *operator->() { return &std::get<0>(held_); }
    status code() const noexcept { return has_value() ? HAMLYN_OK : std::get<1>(held_).status; }
    // What it says of the failure; empty without one.
    const char *text() const noexcept { return has_value() ? "" : std::get<1>(held_).text; }

  private:
    std::variant<T, hamlyn_error> held_;
};

// Nothing, for calls that only succeed or fail.
using done = result<std::monostate>;

// How long a call may wait: `forever`, `poll`, or a duration.
class wait {
  public:
    template <class Rep, class Period>
    constexpr wait(std::chrono::duration<Rep, Period> duration)
        : ns_(duration.count() <= 0 ? 0 : std::chrono::ceil<std::chrono::nanoseconds>(duration).count()) {}

    static constexpr wait forever() { return wait(HAMLYN_FOREVER, 0); }
    static constexpr wait poll() { return wait(HAMLYN_POLL, 0); }

    constexpr std::int64_t ns() const { return ns_; }

  private:
    constexpr wait(std::int64_t ns, int) : ns_(ns) {}
    std::int64_t ns_;
};

// Bytes of the caller: a text, anything contiguous, or a place and a length.
class bytes {
  public:
    constexpr bytes() : data_(nullptr), size_(0) {}
    constexpr bytes(const void *data, std::size_t size) : data_(data), size_(size) {}
    constexpr bytes(std::string_view text) : data_(text.data()), size_(text.size()) {}
    bytes(const char *text) : data_(text), size_(std::strlen(text)) {}
    template <class C, class V = std::remove_pointer_t<decltype(std::declval<const C &>().data())>,
              class = std::enable_if_t<std::is_trivially_copyable_v<V> && !std::is_same_v<std::decay_t<C>, std::string_view>>>
    bytes(const C &contiguous) : data_(contiguous.data()), size_(contiguous.size() * sizeof(V)) {}

    const void *data() const { return data_; }
    std::size_t size() const { return size_; }

  private:
    const void *data_;
    std::size_t size_;
};

// The bytes of a value that can be sent as it lies in memory.
template <class T>
bytes value_of(const T &value) {
    static_assert(std::is_trivially_copyable_v<T>, "only what is trivially copyable can be sent as it lies in memory");
    return bytes(&value, sizeof value);
}

namespace detail {

// Calls a function of hamlyn.h, whose last argument is room for the error.
template <class F, class... A>
done attempt(F function, A... arguments) {
    hamlyn_error failure;
    if (function(arguments..., &failure) != HAMLYN_OK) {
        return failure;
    }
    return std::monostate{};
}

// The same; false if nothing came in time.
template <class F, class... A>
result<bool> attempt_in_time(F function, A... arguments) {
    hamlyn_error failure;
    const status code = function(arguments..., &failure);
    if (code != HAMLYN_OK && code != HAMLYN_TIMED_OUT) {
        return failure;
    }
    return code == HAMLYN_OK;
}

// What a guard shows of its message.
class message {
  public:
    const std::byte *data() const noexcept { return static_cast<const std::byte *>(message_.data); }
    std::size_t size() const noexcept { return message_.length_bytes; }
    bool empty() const noexcept { return size() == 0; }
    const std::byte *begin() const noexcept { return data(); }
    const std::byte *end() const noexcept { return data() + size(); }
    std::string_view text() const noexcept { return {static_cast<const char *>(message_.data), size()}; }
#if __cplusplus >= 202002L
    std::span<const std::byte> span() const noexcept { return {data(), size()}; }
#endif
    // The message as a value; nothing if it is not as long as one.
    template <class T>
    std::optional<T> as() const {
        static_assert(std::is_trivially_copyable_v<T>, "only what is trivially copyable can be read from bytes");
        if (size() != sizeof(T)) {
            return std::nullopt;
        }
        T value;
        std::memcpy(&value, data(), sizeof value);
        return value;
    }

  protected:
    message() = default;
    explicit message(hamlyn_message from) : message_(from) {}
    hamlyn_message message_{};
};

// A handle that closes itself.
template <class H, status (*Close)(H *, hamlyn_error *)>
class handle {
  public:
    handle() = default;
    explicit handle(H *of) noexcept : handle_(of) {}
    handle(handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    handle &operator=(handle &&other) noexcept {
        if (this != &other) {
            close();
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }
    ~handle() { close(); }

    // Closes it before its time. Closing what is closed does nothing.
    void close() noexcept {
        if (handle_ != nullptr) {
            Close(std::exchange(handle_, nullptr), nullptr);
        }
    }
    // For calls of hamlyn.h.
    H *get() const noexcept { return handle_; }
    H *release() noexcept { return std::exchange(handle_, nullptr); }

  private:
    H *handle_ = nullptr;
};

// A message that an end point holds until this goes.
template <class H, status (*Release)(H *, hamlyn_error *)>
class guard : public message {
  public:
    guard(H *end, hamlyn_message from) : message(from), end_(end) {}
    guard(guard &&other) noexcept : message(other.message_), end_(std::exchange(other.end_, nullptr)) {}
    guard &operator=(guard &&other) noexcept {
        if (this != &other) {
            release();
            message_ = other.message_;
            end_ = std::exchange(other.end_, nullptr);
        }
        return *this;
    }
    ~guard() { release(); }

    void release() noexcept {
        if (end_ != nullptr) {
            Release(std::exchange(end_, nullptr), nullptr);
        }
    }

  protected:
    H *end() const noexcept { return end_; }
    H *taken() noexcept { return std::exchange(end_, nullptr); }

  private:
    H *end_;
};

// Receives with a function of hamlyn.h: nothing if nothing came in time.
template <class G, class H>
result<std::optional<G>> received(status (*receive)(H *, std::int64_t, hamlyn_message *, hamlyn_error *), H *end, wait limit) {
    hamlyn_message message;
    return attempt_in_time(receive, end, limit.ns(), &message).map([&](bool came) {
        return came ? std::optional<G>(std::in_place, end, message) : std::optional<G>();
    });
}

// Messages one after the other, until the stream is finished; other failures throw.
template <class E, class G>
class iterator {
  public:
    explicit iterator(E *end) : end_(end) { ++*this; }

    G &operator*() { return *message_; }
    iterator &operator++() {
        message_.reset();
        auto next = end_->try_recv(wait::forever());
        if (next.code() == HAMLYN_FINISHED) {
            end_ = nullptr;
        } else {
            auto message = std::move(next).value();
            if (message) {
                message_.emplace(*std::move(message));
            }
        }
        return *this;
    }
    struct last {};
    bool operator!=(last) const { return end_ != nullptr; }

  private:
    E *end_;
    std::optional<G> message_;
};

template <class E, class G>
class messages {
  public:
    iterator<E, G> begin() { return iterator<E, G>(static_cast<E *>(this)); }
    typename iterator<E, G>::last end() { return {}; }
};

} // namespace detail

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
        hamlyn::ticket made;
        detail::attempt(hamlyn_datagram_ticket, get(), &made).value();
        return made;
    }
    void revoke() {
        detail::attempt(hamlyn_revoke_datagram, get()).value();
    }
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

// A record, where it landed.
class record : public detail::guard<hamlyn_stream_receiver, hamlyn_release_record> {
  public:
    using guard::guard;
};

class stream_receiver : public detail::handle<hamlyn_stream_receiver, hamlyn_close_stream_receiver>,
                        public detail::messages<stream_receiver, record> {
  public:
    using handle::handle;

    result<std::optional<record>> try_recv(wait limit) { return detail::received<record>(hamlyn_recv_record, get(), limit); }
    // Nothing if none came in time. Throws HAMLYN_FINISHED when the sender has closed; a loop over the stream ends then.
    std::optional<record> recv(wait limit = wait::forever()) { return try_recv(limit).value(); }
    peer sender() const {
        peer who;
        detail::attempt(hamlyn_stream_peer, get(), &who).value();
        return who;
    }
};

class stream_sender : public detail::handle<hamlyn_stream_sender, hamlyn_close_stream_sender> {
  public:
    using handle::handle;

    done try_send(bytes data, wait limit = wait::forever()) {
        return detail::attempt(hamlyn_send_record, get(), data.data(), data.size(), limit.ns());
    }
    void send(bytes data, wait limit = wait::forever()) { try_send(data, limit).value(); }
    void flush(wait limit = wait::forever()) {
        detail::attempt(hamlyn_flush_stream, get(), limit.ns()).value();
    }
    void fence(wait limit = wait::forever()) {
        detail::attempt(hamlyn_fence_stream, get(), limit.ns()).value();
    }
    // Says that the stream is whole.
    void finish(wait limit = wait::forever()) {
        detail::attempt(hamlyn_finish_stream, get(), limit.ns()).value();
    }
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
    void read(std::uint64_t offset, void *into, std::size_t size) const {
        detail::attempt(hamlyn_read_area, get(), offset, into, size).value();
    }
    // A value of the area.
    template <class T>
    T read(std::uint64_t offset) const {
        static_assert(std::is_trivially_copyable_v<T>, "only what is trivially copyable can be read from bytes");
        T value;
        read(offset, &value, sizeof value);
        return value;
    }
    void write(std::uint64_t offset, bytes data) {
        detail::attempt(hamlyn_write_area, get(), offset, data.data(), data.size()).value();
    }
    hamlyn::ticket ticket(std::uint64_t offset, std::uint64_t size) const {
        hamlyn::ticket made;
        detail::attempt(hamlyn_area_ticket, get(), offset, size, &made).value();
        return made;
    }
};

class tag_sender : public detail::handle<hamlyn_tag_sender, hamlyn_close_tag_sender> {
  public:
    using handle::handle;

    void send(std::uint64_t offset, bytes data, std::uint64_t tag, wait limit = wait::forever()) {
        detail::attempt(hamlyn_send_tag, get(), offset, data.data(), data.size(), tag, limit.ns()).value();
    }
    void fence(wait limit = wait::forever()) {
        detail::attempt(hamlyn_fence_tags, get(), limit.ns()).value();
    }
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
    void reply(bytes data) {
        detail::attempt(hamlyn_reply, taken(), data.data(), data.size()).value();
    }
    deferred_call defer() {
        hamlyn_deferred_call *deferred = nullptr;
        detail::attempt(hamlyn_defer_call, taken(), &deferred).value();
        return deferred_call(deferred);
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
    pending_call start(bytes request, wait limit = wait::forever()) {
        hamlyn_pending_call *pending = nullptr;
        detail::attempt(hamlyn_start_call, get(), request.data(), request.size(), limit.ns(), &pending).value();
        return pending_call(pending);
    }
    // The reply to a call that was started; nothing if it did not come in time.
    std::optional<reply> take(const pending_call &pending, wait limit = wait::forever()) {
        hamlyn_message message;
        if (!detail::attempt_in_time(hamlyn_take_reply, get(), pending.get(), limit.ns(), &message).value()) {
            return std::nullopt;
        }
        return reply(get(), message);
    }
};

class group_receiver : public detail::handle<hamlyn_group_receiver, hamlyn_close_group_receiver> {
  public:
    using handle::handle;

    void begin(const std::uint64_t *lengths, std::size_t members) {
        detail::attempt(hamlyn_begin_group, get(), lengths, members).value();
    }
    // The whole place, when everything has come; valid until the next round begins. Nothing if not in time.
    std::optional<bytes> recv(wait limit = wait::forever()) {
        hamlyn_message message;
        if (!detail::attempt_in_time(hamlyn_recv_group, get(), limit.ns(), &message).value()) {
            return std::nullopt;
        }
        return bytes(message.data, message.length_bytes);
    }
};

class group_sender : public detail::handle<hamlyn_group_sender, hamlyn_close_group_sender> {
  public:
    using handle::handle;

    void send(std::uint64_t offset, bytes data, wait limit = wait::forever()) { send(offset, data, 0, limit); }
    void send_last(std::uint64_t offset, bytes data, wait limit = wait::forever()) { send(offset, data, 1, limit); }
    void fence(wait limit = wait::forever()) {
        detail::attempt(hamlyn_fence_group, get(), limit.ns()).value();
    }

  private:
    void send(std::uint64_t offset, bytes data, std::uint32_t is_last, wait limit) {
        detail::attempt(hamlyn_send_part, get(), offset, data.data(), data.size(), is_last, limit.ns()).value();
    }
};

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
        std::size_t readers = 0;
        detail::attempt(hamlyn_publish, std::exchange(publisher_, nullptr), limit.ns(), &readers).value();
        return readers;
    }

  private:
    hamlyn_publisher *publisher_;
    void *data_;
    std::size_t size_;
};

class publisher : public detail::handle<hamlyn_publisher, hamlyn_close_publisher> {
  public:
    using handle::handle;

    hamlyn::loan loan(std::size_t size, wait limit = wait::forever()) {
        void *data = nullptr;
        detail::attempt(hamlyn_loan, get(), size, limit.ns(), &data).value();
        return hamlyn::loan(get(), data, size);
    }
    void await_readers(std::size_t readers, wait limit = wait::forever()) {
        detail::attempt(hamlyn_await_readers, get(), readers, limit.ns()).value();
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

  private:
    hamlyn_subscriber *subscriber_;
    std::size_t size_;
    std::uint64_t number_;
};

class subscriber : public detail::handle<hamlyn_subscriber, hamlyn_close_subscriber> {
  public:
    using handle::handle;

    std::optional<sample> recv(wait limit = wait::forever()) {
        std::size_t size;
        std::uint64_t number;
        if (!detail::attempt_in_time(hamlyn_recv_sample, get(), limit.ns(), &size, &number).value()) {
            return std::nullopt;
        }
        return std::optional<sample>(std::in_place, get(), size, number);
    }
};

// What happened, and what it says for people.
struct event {
    hamlyn_event what;
    std::string text;
};

// A manager's settings, with their defaults.
class options {
  public:
    options() {
        detail::attempt(hamlyn_default_options, &options_).value();
    }
    options &name(std::string name) {
        name_ = std::move(name);
        return *this;
    }
    options &in_namespace(std::string name) {
        namespace_ = std::move(name);
        return *this;
    }
    // HAMLYN_PROC, HAMLYN_NP, HAMLYN_INJECT or HAMLYN_RECEIVE.
    options &strategy(std::uint32_t strategy) {
        options_.strategy = strategy;
        return *this;
    }
    // Any thread may use the manager and its end points, one at a time.
    options &shared() {
        options_.shared = 1;
        return *this;
    }
    options &queue_entries(std::uint32_t entries) {
        options_.queue_entries = entries;
        return *this;
    }
    hamlyn_options get() const {
        hamlyn_options all = options_;
        all.name = name_ ? name_->c_str() : nullptr;
        all.namespace_name = namespace_ ? namespace_->c_str() : nullptr;
        return all;
    }

  private:
    hamlyn_options options_;
    std::optional<std::string> name_, namespace_;
};

// An interface and its end points. Belongs to the thread that opened it, unless it is shared.
class manager : public detail::handle<hamlyn_manager, hamlyn_close> {
  public:
    // One that others reach by tickets only.
    manager() : manager(hamlyn::options()) {}
    explicit manager(std::string name) : manager(hamlyn::options().name(std::move(name))) {}
    explicit manager(const hamlyn::options &options) : handle(opened(options)) {}

    datagram_receiver bind_datagram(const std::string &item, std::uint32_t buffer_bytes) {
        return made<datagram_receiver>(hamlyn_bind_datagram, item.c_str(), buffer_bytes);
    }
    // One that is reached by its ticket.
    datagram_receiver datagram(std::uint32_t buffer_bytes) {
        return made<datagram_receiver>(hamlyn_bind_datagram, static_cast<const char *>(nullptr), buffer_bytes);
    }
    datagram_sender connect_datagram(const std::string &to, wait limit = wait::forever()) {
        return made<datagram_sender>(hamlyn_connect_datagram, to.c_str(), limit.ns());
    }
    datagram_sender grow_datagram(const hamlyn::ticket &ticket, wait limit = wait::forever()) {
        return made<datagram_sender>(hamlyn_grow_datagram, &ticket, limit.ns());
    }
    stream_receiver bind_stream(const std::string &item, const hamlyn_stream_options &options = {}) {
        return made<stream_receiver>(hamlyn_bind_stream, item.c_str(), &options);
    }
    stream_sender connect_stream(const std::string &to, wait limit = wait::forever()) {
        return made<stream_sender>(hamlyn_connect_stream, to.c_str(), limit.ns());
    }
    tag_receiver bind_tagged_write(const std::string &item, std::uint64_t area_bytes, std::uint32_t tags) {
        return made<tag_receiver>(hamlyn_bind_tagged_write, item.c_str(), area_bytes, tags);
    }
    tag_sender connect_tagged_write(const std::string &to, wait limit = wait::forever()) {
        return made<tag_sender>(hamlyn_connect_tagged_write, to.c_str(), limit.ns());
    }
    tag_sender grow_tagged_write(const hamlyn::ticket &ticket, wait limit = wait::forever()) {
        return made<tag_sender>(hamlyn_grow_tagged_write, &ticket, limit.ns());
    }
    service bind_service(const std::string &item, const hamlyn_service_options &options = {}) {
        return made<service>(hamlyn_bind_service, item.c_str(), &options);
    }
    client connect_service(const std::string &to, wait limit = wait::forever()) {
        return made<client>(hamlyn_connect_service, to.c_str(), limit.ns());
    }
    group_receiver bind_group(const std::string &item, std::uint32_t place_bytes) {
        return made<group_receiver>(hamlyn_bind_group, item.c_str(), place_bytes);
    }
    group_sender connect_group(const std::string &to, wait limit = wait::forever()) {
        return made<group_sender>(hamlyn_connect_group, to.c_str(), limit.ns());
    }
    publisher bind_publisher(const std::string &item, const hamlyn_publisher_options &options = {}) {
        return made<publisher>(hamlyn_bind_publisher, item.c_str(), &options);
    }
    subscriber connect_subscriber(const std::string &to, wait limit = wait::forever()) {
        return made<subscriber>(hamlyn_connect_subscriber, to.c_str(), limit.ns());
    }
    std::optional<event> next_event(wait limit = wait::poll()) {
        event happened;
        char text[256];
        if (!detail::attempt_in_time(hamlyn_next_event, get(), limit.ns(), &happened.what, text, sizeof text).value()) {
            return std::nullopt;
        }
        happened.text = text;
        return happened;
    }
    void poll() {
        detail::attempt(hamlyn_poll, get()).value();
    }
    void fence(wait limit = wait::forever()) {
        detail::attempt(hamlyn_fence, get(), limit.ns()).value();
    }
    int descriptor() const {
        int descriptor = -1;
        detail::attempt(hamlyn_descriptor, get(), &descriptor).value();
        return descriptor;
    }
    // Another handle of a shared manager, for another thread.
    manager share() const {
        hamlyn_manager *another = nullptr;
        detail::attempt(hamlyn_share_manager, get(), &another).value();
        return manager(another);
    }

  private:
    explicit manager(hamlyn_manager *of) : handle(of) {}

    static hamlyn_manager *opened(const hamlyn::options &options) {
        hamlyn_manager *manager = nullptr;
        const hamlyn_options all = options.get();
        detail::attempt(hamlyn_open_with, &all, &manager).value();
        return manager;
    }

    // Makes an end point with a function of hamlyn.h.
    template <class E, class F, class... A>
    E made(F make, A... arguments) {
        using H = std::remove_pointer_t<decltype(std::declval<E &>().get())>;
        H *end = nullptr;
        detail::attempt(make, get(), arguments..., &end).value();
        return E(end);
    }
};

} // namespace hamlyn

#endif // HAMLYN_HPP
