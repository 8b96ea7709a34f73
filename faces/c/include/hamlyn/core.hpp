// Errors, results, waits, bytes and guards of hamlyn.hpp.

#ifndef HAMLYN_CORE_HPP
#define HAMLYN_CORE_HPP

#include "../hamlyn.h"

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
using seed = hamlyn_seed;
using member = hamlyn_member;

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

// What a function of hamlyn.h puts into its last place but the error's.
template <class T, class F, class... A>
T found(F look, A... arguments) {
    T value{};
    attempt(look, arguments..., &value).value();
    return value;
}

// A value from bytes: what `copy` copies to a place, so many.
template <class T, class F>
T value_from(F copy) {
    static_assert(std::is_trivially_copyable_v<T>, "only what is trivially copyable can be read from bytes");
    T value;
    copy(&value, sizeof value);
    return value;
}

// As `attempt`; false if nothing came in time.
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

} // namespace hamlyn

#endif // HAMLYN_CORE_HPP
