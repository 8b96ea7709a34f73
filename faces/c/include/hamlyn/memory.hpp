// Memory that changes hands, of hamlyn.hpp: areas in pieces that are now the peers' to write and now the program's to read in place, and
// pools, which a program writes in place and others only read.

#ifndef HAMLYN_MEMORY_HPP
#define HAMLYN_MEMORY_HPP

#include "lower.hpp"

namespace hamlyn {

// Bytes of pieces that are in the program's hands, where they lie. As long as it lives, no peer writes them, and the pieces cannot be opened. If
// it outlives its handover, that stays open.
class pieces_view : public detail::message {
  public:
    pieces_view(hamlyn_handover *of, std::uint64_t offset, hamlyn_message bytes) : message(bytes), of_(of), offset_(offset) {}
    pieces_view(pieces_view &&other) noexcept
        : message(other.message_), of_(std::exchange(other.of_, nullptr)), offset_(other.offset_) {}
    pieces_view &operator=(pieces_view &&other) noexcept {
        if (this != &other) {
            end_view();
            message_ = other.message_;
            of_ = std::exchange(other.of_, nullptr);
            offset_ = other.offset_;
        }
        return *this;
    }
    ~pieces_view() { end_view(); }

    // Ends it before its time.
    void end_view() noexcept {
        if (of_ != nullptr) {
            hamlyn_end_view(std::exchange(of_, nullptr), offset_, size(), nullptr);
        }
    }

  private:
    hamlyn_handover *of_;
    std::uint64_t offset_;
};

// An area of pieces that change hands, and the program's end of it. One slot may be opened over the area, which has it to itself.
class handover : public detail::handle<hamlyn_handover, hamlyn_close_handover> {
  public:
    handover(const manager &of, std::uint32_t pieces, std::uint32_t piece_bytes) {
        hamlyn_area *area = nullptr;
        hamlyn_handover *made = nullptr;
        detail::attempt(hamlyn_allocate_handover, of.get(), pieces, piece_bytes, &area, &made).value();
        area_ = hamlyn::area(area);
        handle::operator=(handle(made));
    }

    // For the slot. Reads it, too, whichever hands it is in.
    const hamlyn::area &area() const noexcept { return area_; }
    hamlyn_handover_info info() const { return detail::found<hamlyn_handover_info>(hamlyn_get_handover_info, get()); }
    bool is_held(std::uint32_t number) const { return detail::found<std::uint32_t>(hamlyn_is_piece_held, get(), number) != 0; }
    // Lets peers write pieces. None may be in a view.
    done try_open(std::uint32_t first, std::uint32_t count = 1) {
        return detail::attempt(hamlyn_open_pieces, get(), first, count);
    }
    void open(std::uint32_t first, std::uint32_t count = 1) { try_open(first, count).value(); }
    // Bytes of pieces that are all in the program's hands; HAMLYN_HELD if one is not.
    result<pieces_view> try_view(std::uint64_t offset, std::size_t size) const {
        const void *data = nullptr;
        auto seen = detail::attempt(hamlyn_view_pieces, get(), offset, size, &data);
        return std::move(seen).map([&](std::monostate) { return pieces_view(get(), offset, {data, size}); });
    }
    pieces_view view(std::uint64_t offset, std::size_t size) const { return try_view(offset, size).value(); }

  private:
    hamlyn::area area_;
};

// A part of a pool, to be written in place. It goes back when this goes, unless `keep` was called.
class chunk {
  public:
    chunk(hamlyn_pool *of, const hamlyn_chunk &taken) : of_(of), taken_(taken) {}
    chunk(chunk &&other) noexcept : of_(std::exchange(other.of_, nullptr)), taken_(other.taken_) {}
    chunk &operator=(chunk &&) = delete;
    ~chunk() {
        if (of_ != nullptr) {
            hamlyn_give_back_chunk(of_, taken_.index, nullptr);
        }
    }
    std::byte *data() const noexcept { return static_cast<std::byte *>(taken_.data); }
    std::size_t size() const noexcept { return taken_.length_bytes; }
#if __cplusplus >= 202002L
    std::span<std::byte> span() const noexcept { return {data(), size()}; }
#endif
    // Where it lies in the pool, for those who read it.
    std::uint64_t offset() const noexcept { return taken_.offset; }
    // It stays taken until pool::give_back is called with this number.
    std::uint32_t keep() noexcept {
        of_ = nullptr;
        return taken_.index;
    }

  private:
    hamlyn_pool *of_;
    hamlyn_chunk taken_;
};

// Memory in chunks that this program writes, and that those to whom it is shown read.
class pool : public detail::handle<hamlyn_pool, hamlyn_close_pool> {
  public:
    using handle::handle;
    pool(std::size_t chunk_bytes, std::uint32_t chunks)
        : handle(detail::found<hamlyn_pool *>(hamlyn_open_pool, chunk_bytes, chunks)) {}

    // A free chunk; nothing if none is free.
    std::optional<chunk> take(std::size_t size) {
        hamlyn_chunk taken;
        if (!detail::attempt_in_time(hamlyn_take_chunk, get(), size, &taken).value()) {
            return std::nullopt;
        }
        return std::optional<chunk>(std::in_place, get(), taken);
    }
    void give_back(std::uint32_t index) { detail::attempt(hamlyn_give_back_chunk, get(), index).value(); }
    hamlyn_pool_info info() const { return detail::found<hamlyn_pool_info>(hamlyn_get_pool_info, get()); }
    // The peer of that link may fetch it once, with the number that this returns. It reads all that is ever in it.
    std::uint64_t show(const manager &by, std::uint64_t link) const {
        return detail::found<std::uint64_t>(hamlyn_show_pool, by.get(), get(), link);
    }
    // If it was not fetched, it cannot be any more.
    static void hide(const manager &by, std::uint64_t number) { detail::attempt(hamlyn_hide_pool, by.get(), number).value(); }
};

// A pool of a peer, to be read. Its owner may write it at any time: copy once, and check the copy.
class shared_pool : public detail::handle<hamlyn_shared_pool, hamlyn_close_shared_pool> {
  public:
    using handle::handle;
    // What the peer of that link shows.
    shared_pool(const manager &of, std::uint64_t link, std::uint64_t number, wait limit = wait::forever())
        : handle(detail::found<hamlyn_shared_pool *>(hamlyn_fetch_pool, of.get(), link, number, limit.ns())) {}

    std::uint64_t size() const { return detail::found<std::uint64_t>(hamlyn_shared_pool_bytes, get()); }
    void read(std::uint64_t offset, void *into, std::size_t size) const {
        detail::attempt(hamlyn_read_shared_pool, get(), offset, into, size).value();
    }
    template <class T>
    T read(std::uint64_t offset) const {
        return detail::value_from<T>([&](void *into, std::size_t size) { read(offset, into, size); });
    }
    // Where bytes of it lie, as long as this lives.
    const volatile std::byte *at(std::uint64_t offset, std::size_t size) const {
        return static_cast<const volatile std::byte *>(detail::found<const void *>(hamlyn_view_shared_pool, get(), offset, size));
    }
};

} // namespace hamlyn

#endif // HAMLYN_MEMORY_HPP
