// Memory that is shared with others, of hamlyn.hpp: regions, and windows, through which a program reaches it by pointers.

#ifndef HAMLYN_SHARING_HPP
#define HAMLYN_SHARING_HPP

#include "one_sided.hpp"

namespace hamlyn {

// Memory by a pointer. Others write it at any time, so what a program reads by the pointer may change while it reads.
class window : public detail::handle<hamlyn_window, hamlyn_close_window> {
  public:
    using handle::handle;
    window(const area &over, std::uint64_t offset, std::uint64_t size)
        : handle(detail::found<hamlyn_window *>(hamlyn_open_area_window, over.get(), offset, size)) {}
    // Over what an initiator reaches, if it is mapped here.
    explicit window(const initiator &of) : handle(detail::found<hamlyn_window *>(hamlyn_open_initiator_window, of.get())) {}

    hamlyn_window_info info() const { return detail::found<hamlyn_window_info>(hamlyn_get_window, get()); }
    void read(std::uint64_t offset, void *into, std::size_t size) const {
        detail::attempt(hamlyn_read_window, get(), offset, into, size).value();
    }
    template <class T>
    T read(std::uint64_t offset) const {
        return detail::value_from<T>([&](void *into, std::size_t size) { read(offset, into, size); });
    }
    void write(std::uint64_t offset, bytes data) {
        detail::attempt(hamlyn_write_window, get(), offset, data.data(), data.size()).value();
    }
    std::uint64_t change(std::uint64_t offset, const atomic_change &change) {
        return detail::found<std::uint64_t>(hamlyn_change_window, get(), offset, &change);
    }
};

namespace detail {

// In hamlyn.h closing the handle ends nothing. What cannot be revoked was revoked before, or lasts until its slot is closed.
inline status end_region(hamlyn_region *of, hamlyn_error *error) {
    hamlyn_revoke_region(of, nullptr);
    return hamlyn_close_region(of, error);
}

} // namespace detail

// Whole pages of a slot, which the peer of a link, or every linked peer of this host, may attach with the ticket. The region ends when this is
// closed. `revoke` throws if there is too little memory to end it, and can be tried again; closing does not tell.
class region : public detail::handle<hamlyn_region, detail::end_region> {
  public:
    region(const slot &of, std::uint64_t offset, std::uint64_t size, std::uint32_t access = HAMLYN_REGION_WRITABLE,
           std::uint64_t link = HAMLYN_ALL_LINKED) {
        hamlyn_region *made = nullptr;
        detail::attempt(hamlyn_share_region, of.get(), offset, size, access, link, &made, &ticket_).value();
        handle::operator=(handle(made));
    }

    // To be given to those who may attach it.
    const hamlyn_region_ticket &ticket() const noexcept { return ticket_; }
    void revoke() { detail::attempt(hamlyn_revoke_region, get()).value(); }

  private:
    hamlyn_region_ticket ticket_{};
};

// A region of another, mapped here. Operations of initiators on it, and messages of 512 bytes and more, go without packets.
class attached : public detail::handle<hamlyn_attached, hamlyn_close_attached> {
  public:
    attached(const manager &of, const hamlyn_region_ticket &given, wait limit = wait::forever())
        : handle(detail::found<hamlyn_attached *>(hamlyn_attach_region, of.get(), &given, limit.ns())) {}

    // True while the region lasts.
    done try_check() const { return detail::attempt(hamlyn_check_attached, get()); }
    hamlyn::window window() const { return hamlyn::window(detail::found<hamlyn_window *>(hamlyn_open_attached_window, get())); }
};

} // namespace hamlyn

#endif // HAMLYN_SHARING_HPP
