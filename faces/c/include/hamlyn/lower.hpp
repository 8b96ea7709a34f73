// The lower layer of hamlyn.hpp: areas, queues, slots, termini, targets, and one-sided operations.
//
// Objects close themselves, and hold their manager, so they may outlive its object.

#ifndef HAMLYN_LOWER_HPP
#define HAMLYN_LOWER_HPP

#include "manager.hpp"

namespace hamlyn {

using notification = hamlyn_notification;
using slot_options = hamlyn_slot_options;
using outgoing_message = hamlyn_outgoing_message;
using atomic_change = hamlyn_atomic_change;

namespace detail {

// Makes an object with a function of hamlyn.h, which puts it into its last place but the error's.
template <class H, class F, class... A>
H *object(F make, A... arguments) {
    H *made = nullptr;
    attempt(make, arguments..., &made).value();
    return made;
}

} // namespace detail

// Memory for messages. Peers write it at any time, so it is copied in and out.
class area : public detail::handle<hamlyn_area, hamlyn_close_area> {
  public:
    using handle::handle;
    // HAMLYN_AREA_PRIVATE, HAMLYN_AREA_GRANTABLE or HAMLYN_AREA_EXPORTABLE.
    area(const manager &of, std::uint64_t size, std::uint32_t kind = HAMLYN_AREA_PRIVATE)
        : handle(detail::object<hamlyn_area>(hamlyn_allocate_area, of.get(), size, kind)) {}

    void read(std::uint64_t offset, void *into, std::size_t size) const {
        detail::attempt(hamlyn_copy_from_area, get(), offset, into, size).value();
    }
    template <class T>
    T read(std::uint64_t offset) const {
        static_assert(std::is_trivially_copyable_v<T>, "only what is trivially copyable can be read from bytes");
        T value;
        read(offset, &value, sizeof value);
        return value;
    }
    void write(std::uint64_t offset, bytes data) {
        detail::attempt(hamlyn_copy_to_area, get(), offset, data.data(), data.size()).value();
    }
};

class queue : public detail::handle<hamlyn_queue, hamlyn_close_queue> {
  public:
    using handle::handle;
    queue(const manager &of, std::size_t entries)
        : handle(detail::object<hamlyn_queue>(hamlyn_open_queue, of.get(), entries)) {}

    result<std::optional<notification>> try_recv(wait limit) {
        notification came;
        return detail::attempt_in_time(hamlyn_rcv, get(), limit.ns(), &came).map([&](bool is_there) {
            return is_there ? std::optional<notification>(came) : std::optional<notification>();
        });
    }
    std::optional<notification> recv(wait limit = wait::forever()) { return try_recv(limit).value(); }
};

class slot : public detail::handle<hamlyn_slot, hamlyn_close_slot> {
  public:
    using handle::handle;
    slot(const manager &of, const area &over, const slot_options &options = {})
        : handle(detail::object<hamlyn_slot>(hamlyn_open_slot, of.get(), over.get(), &options)) {}

    std::uint32_t number() const {
        std::uint32_t number;
        detail::attempt(hamlyn_slot_number, get(), &number).value();
        return number;
    }
    hamlyn::ticket fast_ticket(std::uint64_t offset, std::uint64_t size) const {
        hamlyn::ticket made;
        detail::attempt(hamlyn_fast_ticket, get(), offset, size, &made).value();
        return made;
    }
    hamlyn::ticket entry_ticket(std::uint16_t entry, std::uint64_t offset, std::uint64_t size) const {
        hamlyn::ticket made;
        detail::attempt(hamlyn_entry_ticket, get(), entry, offset, size, &made).value();
        return made;
    }
    void permit(std::uint16_t entry, std::uint64_t key, std::uint64_t low, std::uint64_t high) {
        detail::attempt(hamlyn_permit_entry, get(), entry, key, low, high).value();
    }
    void arm(std::uint16_t entry) { detail::attempt(hamlyn_arm_entry, get(), entry).value(); }
    hamlyn_entry entry(std::uint16_t entry) const {
        hamlyn_entry state;
        detail::attempt(hamlyn_get_entry, get(), entry, &state).value();
        return state;
    }
    hamlyn_slot_info info() const {
        hamlyn_slot_info info;
        detail::attempt(hamlyn_get_slot_info, get(), &info).value();
        return info;
    }
    void revoke() { detail::attempt(hamlyn_revoke_slot, get()).value(); }
    void rekey() { detail::attempt(hamlyn_rekey_slot, get()).value(); }
};

class terminus : public detail::handle<hamlyn_terminus, hamlyn_close_terminus> {
  public:
    using handle::handle;
    explicit terminus(const manager &of)
        : handle(detail::object<hamlyn_terminus>(hamlyn_open_terminus, of.get(), std::uint32_t{0}, std::uint8_t{0})) {}
};

// A ticket that can be sent to, by a terminus.
class target : public detail::handle<hamlyn_target, hamlyn_close_target> {
  public:
    using handle::handle;
    target(const terminus &by, const hamlyn::ticket &ticket, wait limit = wait::forever())
        : handle(detail::object<hamlyn_target>(hamlyn_open_target, by.get(), &ticket, limit.ns())) {}

    done try_send(const outgoing_message &message, wait limit) {
        return detail::attempt(hamlyn_send_msg, get(), &message, limit.ns(), static_cast<std::uint64_t *>(nullptr));
    }
    // In fast mode, with a word.
    void send(std::uint64_t offset, bytes data, std::uint64_t word, wait limit = wait::forever()) {
        outgoing_message message{};
        message.data = data.data();
        message.length_bytes = data.size();
        message.offset = offset;
        message.word = word;
        try_send(message, limit).value();
    }
    void store(std::uint64_t offset, bytes data, wait limit = wait::forever()) {
        detail::attempt(hamlyn_store, get(), offset, data.data(), data.size(), limit.ns()).value();
    }
    std::uint64_t link() const {
        std::uint64_t link;
        detail::attempt(hamlyn_target_link, get(), &link).value();
        return link;
    }
};

// Access to the memory that a ticket names: each call waits until the operation is complete.
class initiator : public detail::handle<hamlyn_initiator, hamlyn_close_initiator> {
  public:
    using handle::handle;
    initiator(const manager &of, const hamlyn::ticket &ticket, std::uint64_t landing_bytes = 0, wait limit = wait::forever())
        : handle(detail::object<hamlyn_initiator>(hamlyn_open_initiator, of.get(), &ticket, landing_bytes, limit.ns())) {}

    void read(std::uint64_t offset, void *into, std::size_t size, wait limit = wait::forever()) {
        detail::attempt(hamlyn_read, get(), offset, into, size, limit.ns()).value();
    }
    template <class T>
    T read(std::uint64_t offset, wait limit = wait::forever()) {
        static_assert(std::is_trivially_copyable_v<T>, "only what is trivially copyable can be read from bytes");
        T value;
        read(offset, &value, sizeof value, limit);
        return value;
    }
    void put(std::uint64_t offset, bytes data, wait limit = wait::forever()) {
        detail::attempt(hamlyn_put, get(), offset, data.data(), data.size(), limit.ns()).value();
    }
    std::uint64_t change(std::uint64_t offset, const atomic_change &change, wait limit = wait::forever()) {
        std::uint64_t before;
        detail::attempt(hamlyn_change, get(), offset, &change, limit.ns(), &before).value();
        return before;
    }
    std::uint64_t add(std::uint64_t offset, std::uint64_t operand, wait limit = wait::forever()) {
        return change(offset, {HAMLYN_CHANGE_ADD, 64, operand, 0}, limit);
    }
};

} // namespace hamlyn

#endif // HAMLYN_LOWER_HPP
