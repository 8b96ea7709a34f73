// Split-C for C++: global_ptr<T> and spread_ptr<T> over the functions of splitc.h (decision 0038).
//
//     splitc::spread_ptr<long> counters = splitc::all_spread_malloc<long>(PROCS);
//     *(counters + MYPROC) = 7;
//     long first = *counters;
//
// A dereferenced pointer is a reference: read as a value, it reads; assigned to, it writes; both block. get, put and store are
// split-phase. Values are copied byte by byte, so T must be trivially copyable.
#ifndef SPLITC_HPP
#define SPLITC_HPP

#include <cstddef>
#include <type_traits>

#include "splitc.h"

namespace splitc {

// Where an access is made: calls name the place of their caller.
struct here {
    splitc_place place;
    here(const char *file = __builtin_FILE(), int line = __builtin_LINE()) : place{file, line} {}
};

template <typename T> class global_ptr;

// What a global pointer points to.
template <typename T> class global_ref {
    static_assert(std::is_trivially_copyable<T>::value, "values of global memory are copied byte by byte");

public:
    global_ref(splitc_global address, here at) : address_(address), at_(at) {}
    global_ref(const global_ref &) = default;

    operator T() const
    {
        T value;
        splitc_read(&value, address_, sizeof value, &at_.place);
        return value;
    }
    const global_ref &operator=(const T &value) const
    {
        splitc_write(address_, &value, sizeof value, &at_.place);
        return *this;
    }
    const global_ref &operator=(const global_ref &other) const { return *this = static_cast<T>(other); }
    const global_ref &operator+=(const T &value) const { return *this = static_cast<T>(*this) + value; }
    const global_ref &operator-=(const T &value) const { return *this = static_cast<T>(*this) - value; }
    global_ptr<T> operator&() const;

private:
    splitc_global address_;
    here at_;
};

// A pointer to a value of any processor; its arithmetic stays on that processor.
template <typename T> class global_ptr {
public:
    constexpr global_ptr() : address_(0) {}
    constexpr global_ptr(std::nullptr_t) : address_(0) {}
    constexpr explicit global_ptr(splitc_global address) : address_(address) {}
    global_ptr(int proc, T *address) : address_(splitc_to_global(proc, address)) {}

    int proc() const { return splitc_to_proc(address_); }
    T *local() const { return static_cast<T *>(splitc_to_local(address_)); }
    constexpr splitc_global address() const { return address_; }
    explicit operator bool() const { return address_ != 0; }

    global_ref<T> operator*() const { return at(0); }
    global_ref<T> operator[](long index) const { return at(index); }
    global_ref<T> at(long index, here place = here()) const { return global_ref<T>((*this + index).address_, place); }

    global_ptr operator+(long values) const { return global_ptr(splitc_global_add(address_, values, sizeof(T))); }
    global_ptr operator-(long values) const { return *this + -values; }
    long operator-(global_ptr other) const { return static_cast<long>(address_ - other.address_) / static_cast<long>(sizeof(T)); }
    global_ptr &operator+=(long values) { return *this = *this + values; }
    global_ptr &operator-=(long values) { return *this = *this - values; }
    global_ptr &operator++() { return *this += 1; }
    global_ptr operator++(int)
    {
        global_ptr before = *this;
        *this += 1;
        return before;
    }
    bool operator==(global_ptr other) const { return address_ == other.address_; }
    bool operator!=(global_ptr other) const { return address_ != other.address_; }

    void get(T *to, here at = here()) const { splitc_get(to, address_, sizeof(T), &at.place); }
    void put(const T &value, here at = here()) const { splitc_put(address_, &value, sizeof(T), &at.place); }
    void store(const T &value, here at = here()) const { splitc_store(address_, &value, sizeof(T), &at.place); }
    void bulk_read(T *to, std::size_t count, here at = here()) const { splitc_read(to, address_, count * sizeof(T), &at.place); }
    void bulk_write(const T *from, std::size_t count, here at = here()) const
    {
        splitc_write(address_, from, count * sizeof(T), &at.place);
    }
    void bulk_get(T *to, std::size_t count, here at = here()) const { splitc_get(to, address_, count * sizeof(T), &at.place); }
    void bulk_put(const T *from, std::size_t count, here at = here()) const
    {
        splitc_put(address_, from, count * sizeof(T), &at.place);
    }
    void bulk_store(const T *from, std::size_t count, here at = here()) const
    {
        splitc_store(address_, from, count * sizeof(T), &at.place);
    }

private:
    splitc_global address_;
};

template <typename T> global_ptr<T> global_ref<T>::operator&() const { return global_ptr<T>(address_); }

// A pointer into an array that is spread over the processors: the next element lies on the next processor.
template <typename T> class spread_ptr {
public:
    constexpr spread_ptr() : address_(0) {}
    constexpr explicit spread_ptr(splitc_global address) : address_(address) {}

    global_ptr<T> global() const { return global_ptr<T>(address_); }
    T *local() const { return static_cast<T *>(splitc_to_local(address_)); }
    constexpr splitc_global address() const { return address_; }
    explicit operator bool() const { return address_ != 0; }

    global_ref<T> operator*() const { return at(0); }
    global_ref<T> operator[](long index) const { return at(index); }
    global_ref<T> at(long index, here place = here()) const { return (*this + index).global().at(0, place); }

    spread_ptr operator+(long elements) const { return spread_ptr(splitc_spread_add(address_, elements, sizeof(T))); }
    spread_ptr operator-(long elements) const { return *this + -elements; }
    long operator-(spread_ptr other) const { return splitc_spread_difference(address_, other.address_, sizeof(T)); }
    spread_ptr &operator+=(long elements) { return *this = *this + elements; }
    spread_ptr &operator++() { return *this += 1; }
    bool operator==(spread_ptr other) const { return address_ == other.address_; }
    bool operator!=(spread_ptr other) const { return address_ != other.address_; }

private:
    splitc_global address_;
};

// Collective.
template <typename T> spread_ptr<T> all_spread_malloc(long count, here at = here())
{
    return spread_ptr<T>(splitc_all_spread_malloc(count, sizeof(T), &at.place));
}

template <typename T> void all_spread_free(spread_ptr<T> array, here at = here())
{
    splitc_all_spread_free(array.address(), &at.place);
}

inline void barrier(here at = here()) { splitc_barrier(&at.place); }
inline void sync(here at = here()) { splitc_sync(&at.place); }
inline void store_sync(long bytes, here at = here()) { splitc_store_sync(bytes, &at.place); }
inline void reset_store_sync(here at = here()) { splitc_reset_store_sync(&at.place); }
inline void all_store_sync(here at = here()) { splitc_all_store_sync(&at.place); }

} // namespace splitc

#endif
