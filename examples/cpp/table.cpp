// A key-value table in the memory of its owner that many writers fill by tagged writes, without a lock or a call of the kernel.
// Each writer is told rows of its own; the tag of a write says which row is new. Writers must not disturb each other: they are
// trusted with the whole table. For others there are slots in paranoid mode (docs/security.md).
//
//     table own 3              # prints the table when three pairs have come
//     table put tea=2 milk=1
//     table put salt=7
#include <hamlyn.hpp>

#include <cstring>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t WRITERS = 8, ROWS_EACH = 16, ROWS = WRITERS * ROWS_EACH;

// Each filled up with zeros.
struct row {
    char key[24], value[40];
};

// The text before the zeros.
template <std::size_t N>
std::string text(const char (&bytes)[N]) {
    return std::string(bytes, strnlen(bytes, N));
}

void own(int pairs) {
    hamlyn::manager owner("table");
    auto table = owner.bind_tagged_write("pairs", ROWS * sizeof(row), ROWS);
    for (std::uint64_t writer = 0; writer < WRITERS; writer++) {
        // Offered once: no two writers get the same rows.
        owner.offer("rows", std::to_string(writer * ROWS_EACH), HAMLYN_OFFER_ONCE);
    }

    std::map<std::string, std::uint64_t> row_of;
    for (; pairs > 0; pairs--) {
        const auto tag = table.recv().value();
        // Another may send any tag.
        if (tag >= ROWS) {
            throw std::out_of_range("tag " + std::to_string(tag) + " names no row");
        }
        row_of[text(table.read<row>(tag * sizeof(row)).key)] = tag;
    }
    for (const auto &[key, tag] : row_of) {
        std::cout << key << '=' << text(table.read<row>(tag * sizeof(row)).value) << '\n';
    }
}

void put(int count, char **pairs) {
    if (static_cast<std::uint64_t>(count) > ROWS_EACH) {
        throw std::length_error("a writer has " + std::to_string(ROWS_EACH) + " rows");
    }
    hamlyn::manager me;
    auto number = std::stoull(me.ask("table", "rows", 10s));
    auto table = me.connect_tagged_write("table/pairs", 10s);
    for (int at = 0; at < count; at++, number++) {
        const std::string pair = pairs[at];
        const auto equals = pair.find('=');
        row next{};
        if (equals == pair.npos || equals > sizeof next.key || pair.size() - equals - 1 > sizeof next.value) {
            throw std::length_error(pair + ": a pair is KEY=VALUE, with a key of up to 24 bytes and a value of up to 40");
        }
        pair.copy(next.key, equals);
        pair.copy(next.value, sizeof next.value, equals + 1);
        table.send(number * sizeof(row), hamlyn::value_of(next), number, 10s);
    }
    // All rows are in their place; or the owner has what it wanted, and is gone.
    auto fence = table.try_fence(10s);
    if (!fence && fence.code() != HAMLYN_PEER_LOST) {
        std::move(fence).value();
    }
}

} // namespace

int main(int argc, char **argv) try {
    const std::string does = argc >= 2 ? argv[1] : "";
    if (does == "own" && argc == 3) {
        own(std::stoi(argv[2]));
    } else if (does == "put") {
        put(argc - 2, argv + 2);
    } else {
        std::cerr << "usage: table own PAIRS | table put KEY=VALUE...\n";
        return 2;
    }
    return 0;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
