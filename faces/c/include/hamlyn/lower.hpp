// The lower layer of hamlyn.hpp: areas, queues, slots, termini and targets.
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
using piece = hamlyn_piece;

// Memory for messages. Peers write it at any time, so it is copied in and out.
class area : public detail::handle<hamlyn_area, hamlyn_close_area> {
  public:
    using handle::handle;
    // HAMLYN_AREA_PRIVATE, HAMLYN_AREA_SHARED or HAMLYN_AREA_SPARSE.
    area(const manager &of, std::uint64_t size, std::uint32_t kind = HAMLYN_AREA_PRIVATE)
        : handle(detail::found<hamlyn_area *>(hamlyn_allocate_area, of.get(), size, kind)) {}
    // One of HAMLYN_AREA_SPARSE at that address, where nothing may be.
    static area at(const manager &of, std::uint64_t size, void *address) {
        return area(detail::found<hamlyn_area *>(hamlyn_allocate_area_at, of.get(), size, address));
    }

    void read(std::uint64_t offset, void *into, std::size_t size) const {
        detail::attempt(hamlyn_copy_from_area, get(), offset, into, size).value();
    }
    template <class T>
    T read(std::uint64_t offset) const {
        return detail::value_from<T>([&](void *into, std::size_t size) { read(offset, into, size); });
    }
    void write(std::uint64_t offset, bytes data) {
        detail::attempt(hamlyn_copy_to_area, get(), offset, data.data(), data.size()).value();
    }
    std::uint64_t size() const { return detail::found<std::uint64_t>(hamlyn_area_bytes, get()); }
    void fill(std::uint64_t offset, std::uint64_t size, std::uint8_t value) {
        detail::attempt(hamlyn_fill_area, get(), offset, size, value).value();
    }
    // A word, which is not torn.
    std::uint64_t load(std::uint64_t offset) const {
        return detail::found<std::uint64_t>(hamlyn_load_from_area, get(), offset);
    }
    void store(std::uint64_t offset, std::uint64_t value) {
        detail::attempt(hamlyn_store_to_area, get(), offset, value).value();
    }
    // Changes a word, as peers change it; what it was before.
    std::uint64_t change(std::uint64_t offset, const atomic_change &change) {
        return detail::found<std::uint64_t>(hamlyn_change_area, get(), offset, &change);
    }
};

class queue : public detail::handle<hamlyn_queue, hamlyn_close_queue> {
  public:
    using handle::handle;
    queue(const manager &of, std::size_t entries)
        : handle(detail::found<hamlyn_queue *>(hamlyn_open_queue, of.get(), entries)) {}

    result<std::optional<notification>> try_recv(wait limit) {
        if (auto loss = std::exchange(untold_loss_, std::nullopt)) {
            return *loss;
        }
        notification came;
        return detail::attempt_in_time(hamlyn_rcv, get(), limit.ns(), &came).map([&](bool is_there) {
            return is_there ? std::optional<notification>(came) : std::optional<notification>();
        });
    }
    std::optional<notification> recv(wait limit = wait::forever()) { return try_recv(limit).value(); }
    // Takes what has come, as far as there is room for it; how many. Throws only if it has taken nothing: if notifications were lost after those
    // that it took, the next call that receives throws HAMLYN_OVERRUN (`lost` counts them at once), and the one after that goes on.
    std::size_t recv_many(notification *into, std::size_t most) {
        if (auto loss = std::exchange(untold_loss_, std::nullopt)) {
            throw error(*loss);
        }
        std::size_t count = 0;
        hamlyn_error failure;
        if (hamlyn_rcv_many(get(), into, most, &count, &failure) != HAMLYN_OK) {
            if (count == 0) {
                throw error(failure);
            }
            untold_loss_ = failure;
        }
        return count;
    }
#if __cplusplus >= 202002L
    std::span<notification> recv_many(std::span<notification> into) { return into.first(recv_many(into.data(), into.size())); }
#endif
    std::size_t entries() const { return detail::found<std::size_t>(hamlyn_queue_entries, get()); }
    std::uint64_t lost() const { return detail::found<std::uint64_t>(hamlyn_queue_lost, get()); }

  private:
    // Found by `recv_many`.
    std::optional<hamlyn_error> untold_loss_;
};

class slot : public detail::handle<hamlyn_slot, hamlyn_close_slot> {
  public:
    using handle::handle;
    slot(const manager &of, const area &over, const slot_options &options = {})
        : handle(detail::found<hamlyn_slot *>(hamlyn_open_slot, of.get(), over.get(), &options)) {}

    std::uint32_t number() const {
        return detail::found<std::uint32_t>(hamlyn_slot_number, get());
    }
    hamlyn::ticket fast_ticket(std::uint64_t offset, std::uint64_t size) const {
        return detail::found<hamlyn::ticket>(hamlyn_fast_ticket, get(), offset, size);
    }
    hamlyn::ticket entry_ticket(std::uint16_t entry, std::uint64_t offset, std::uint64_t size) const {
        return detail::found<hamlyn::ticket>(hamlyn_entry_ticket, get(), entry, offset, size);
    }
    void permit(std::uint16_t entry, std::uint64_t key, std::uint64_t low, std::uint64_t high) {
        detail::attempt(hamlyn_permit_entry, get(), entry, key, low, high).value();
    }
    void arm(std::uint16_t entry) { detail::attempt(hamlyn_arm_entry, get(), entry).value(); }
    void disarm(std::uint16_t entry) { detail::attempt(hamlyn_disarm_entry, get(), entry).value(); }
    void reset(std::uint16_t entry) { detail::attempt(hamlyn_reset_entry, get(), entry).value(); }
    void set_class(std::uint16_t entry, std::uint64_t receive_class) {
        detail::attempt(hamlyn_set_entry_class, get(), entry, receive_class).value();
    }
    // Bytes of stores (target::store) that are in their places.
    std::uint64_t stored(std::uint16_t entry) const {
        return detail::found<std::uint64_t>(hamlyn_stored_bytes, get(), entry);
    }
    hamlyn_entry entry(std::uint16_t entry) const {
        return detail::found<hamlyn_entry>(hamlyn_get_entry, get(), entry);
    }
    hamlyn_slot_info info() const {
        return detail::found<hamlyn_slot_info>(hamlyn_get_slot_info, get());
    }
    std::uint64_t refusals(std::uint32_t reason) const {
        return detail::found<std::uint64_t>(hamlyn_slot_refusals, get(), reason);
    }
    void revoke() { detail::attempt(hamlyn_revoke_slot, get()).value(); }
    void rekey() { detail::attempt(hamlyn_rekey_slot, get()).value(); }
};

class terminus : public detail::handle<hamlyn_terminus, hamlyn_close_terminus> {
  public:
    using handle::handle;
    // With that many send-buffer areas, up to 1,024.
    explicit terminus(const manager &of, std::uint32_t send_areas = 8)
        : handle(detail::found<hamlyn_terminus *>(hamlyn_open_terminus, of.get(), std::uint32_t{0}, send_areas, std::uint8_t{0})) {}

    // Memory from which messages are gathered (target::send_gather); the tag that names it there.
    std::uint16_t bind(const area &of, std::uint64_t offset, std::uint64_t size) {
        return detail::found<std::uint16_t>(hamlyn_bind_area, get(), of.get(), offset, size);
    }
    // Metadata that lie in such memory, up to HAMLYN_METADATA_BYTES.
    std::string gather_metadata(const piece &of) const {
        std::string metadata(static_cast<std::size_t>(of.length_bytes), '\0');
        detail::attempt(hamlyn_gather_metadata, get(), &of, static_cast<void *>(metadata.data()), metadata.size()).value();
        return metadata;
    }
    void unbind(std::uint16_t tag) { detail::attempt(hamlyn_unbind_area, get(), tag).value(); }
};

// A ticket that can be sent to, by a terminus.
class target : public detail::handle<hamlyn_target, hamlyn_close_target> {
  public:
    using handle::handle;
    target(const terminus &by, const hamlyn::ticket &given, wait limit = wait::forever())
        : handle(detail::found<hamlyn_target *>(hamlyn_open_target, by.get(), &given, limit.ns())) {}

    done try_send(const outgoing_message &message, wait limit) {
        return detail::attempt(hamlyn_send_msg, get(), &message, limit.ns(), static_cast<std::uint64_t *>(nullptr));
    }
    // The message's number, for `completion`.
    std::uint64_t send(const outgoing_message &message, wait limit = wait::forever()) {
        return detail::found<std::uint64_t>(hamlyn_send_msg, get(), &message, limit.ns());
    }
    // In order, for less than one by one. How many went before `limit`; the number of the last is put into `sequence`. Throws only if none
    // went: a message that cannot be sent ends the row, and a call that begins with it throws what is wrong.
    std::size_t send_many(const outgoing_message *messages, std::size_t count, wait limit = wait::forever(),
                          std::uint64_t *sequence = nullptr) {
        std::size_t sent = 0;
        auto went = detail::attempt_in_time(hamlyn_send_many, get(), messages, count, limit.ns(), &sent, sequence);
        if (sent == 0) {
            std::move(went).value();
        }
        return sent;
    }
    // Gathers a message from areas of the terminus. Its number: what it consists of stays as it is until it is complete.
    std::uint64_t send_gather(const outgoing_message &message, const piece *pieces, std::size_t count) {
        return detail::found<std::uint64_t>(hamlyn_send_gather, get(), &message, pieces, count);
    }
    hamlyn_completion completion(std::uint64_t sequence) const {
        return detail::found<hamlyn_completion>(hamlyn_get_completion, get(), sequence);
    }
    // Another ticket to the same interface.
    void retarget(const hamlyn::ticket &given) { detail::attempt(hamlyn_retarget, get(), &given).value(); }
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
        return detail::found<std::uint64_t>(hamlyn_target_link, get());
    }
    // A message could be queued, if the link has no room itself.
    bool has_room() const { return detail::found<std::uint32_t>(hamlyn_has_room, get()) != 0; }
};

// A ticket for a part of what a ticket names.
inline ticket narrowed(const ticket &of, std::uint64_t offset, std::uint64_t size) {
    return detail::found<ticket>(hamlyn_narrow_ticket, &of, offset, size);
}
inline hamlyn_ticket_info info(const ticket &of) {
    return detail::found<hamlyn_ticket_info>(hamlyn_get_ticket_info, &of);
}
// Packets that carry so many bytes, to divide a count by (`divide_share`).
inline std::uint64_t packets_needed(std::uint64_t data_bytes, std::size_t metadata_bytes, std::size_t payload_bytes) {
    return detail::found<std::uint64_t>(hamlyn_packets_needed, data_bytes, metadata_bytes, payload_bytes);
}
// Divides a share of a count among messages that need so many packets each.
inline void divide_share(std::uint64_t share, std::uint32_t counting_bits, const std::uint64_t *needed, std::uint64_t *parts,
                         std::size_t count) {
    detail::attempt(hamlyn_divide_share, share, counting_bits, needed, parts, count).value();
}

} // namespace hamlyn

#endif // HAMLYN_LOWER_HPP
