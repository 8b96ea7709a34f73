// Memory that is given to others, of hamlyn.hpp: pages that a peer writes by itself (grants), memory that all with a ticket map (exports),
// and windows, through which a program reaches it by pointers.

#ifndef HAMLYN_GRANTING_HPP
#define HAMLYN_GRANTING_HPP

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
inline status end_export(hamlyn_export *of, hamlyn_error *error) {
    hamlyn_revoke_export(of, nullptr);
    return hamlyn_close_export(of, error);
}
inline status end_grant(hamlyn_grant *of, hamlyn_error *error) {
    hamlyn_revoke_grant(of, nullptr);
    return hamlyn_close_grant(of, error);
}

} // namespace detail

// A slot's memory, which all who have the ticket map. It ends when this is closed. `revoke` throws if there is too little memory to end it,
// and can be tried again; closing does not tell.
class exported : public detail::handle<hamlyn_export, detail::end_export> {
  public:
    explicit exported(const slot &of) {
        hamlyn_export *made = nullptr;
        detail::attempt(hamlyn_export_slot, of.get(), &made, &ticket_).value();
        handle::operator=(handle(made));
    }

    // To be given to those who may import.
    const hamlyn_export_ticket &ticket() const noexcept { return ticket_; }
    void revoke() { detail::attempt(hamlyn_revoke_export, get()).value(); }

  private:
    hamlyn_export_ticket ticket_{};
};

// Memory of another, mapped here. Operations of initiators on it go without packets.
class imported : public detail::handle<hamlyn_import, hamlyn_close_import> {
  public:
    imported(const manager &of, const hamlyn_export_ticket &given, wait limit = wait::forever())
        : handle(detail::found<hamlyn_import *>(hamlyn_import_slot, of.get(), &given, limit.ns())) {}

    // Whether the export lasts.
    done try_check() const { return detail::attempt(hamlyn_check_import, get()); }
    hamlyn::window window() const { return hamlyn::window(detail::found<hamlyn_window *>(hamlyn_open_import_window, get())); }
};

// Pages of a slot, which the peer of a link writes by itself. They are the program's again when this is closed. `revoke` throws if there is
// too little memory to take them back, and can be tried again; closing does not tell.
class grant : public detail::handle<hamlyn_grant, detail::end_grant> {
  public:
    grant(const slot &of, std::uint64_t offset, std::uint64_t size, std::uint64_t link) {
        hamlyn_grant *made = nullptr;
        detail::attempt(hamlyn_grant_pages, of.get(), offset, size, link, &made, &ticket_).value();
        handle::operator=(handle(made));
    }

    // To be given to the peer, which accepts it (manager::accept).
    const hamlyn_grant_ticket &ticket() const noexcept { return ticket_; }
    void revoke() { detail::attempt(hamlyn_revoke_grant, get()).value(); }

  private:
    hamlyn_grant_ticket ticket_{};
};

} // namespace hamlyn

#endif // HAMLYN_GRANTING_HPP
