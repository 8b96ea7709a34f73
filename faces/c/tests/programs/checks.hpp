// What the programs in C++ say when something is not so.
#ifndef CHECKS_HPP
#define CHECKS_HPP

#include <hamlyn.hpp>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#define IS(condition)                                                                                             \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                          \
            std::exit(1);                                                                                         \
        }                                                                                                         \
    } while (0)

// It fails with that status, and says of what.
template <class F>
void throws(hamlyn::status expected, F act) {
    try {
        act();
    } catch (const hamlyn::error &error) {
        IS(error.code() == expected);
        IS(std::string_view(error.what()).size() > 5);
        return;
    }
    IS(!"it threw nothing");
}

#endif
