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
//
// The lower layer is in hamlyn/lower.hpp, one-sided operations in hamlyn/one_sided.hpp, completion queues in hamlyn/completions.hpp, lanes in
// hamlyn/lanes.hpp, memory that is given to others in hamlyn/sharing.hpp, memory that changes hands in hamlyn/memory.hpp, and with C++20
// coroutines on an event loop in hamlyn/coroutines.hpp; this header includes all.

#ifndef HAMLYN_HPP
#define HAMLYN_HPP

#include "hamlyn/completions.hpp"
#include "hamlyn/core.hpp"
#include "hamlyn/sharing.hpp"
#include "hamlyn/lanes.hpp"
#include "hamlyn/loans.hpp"
#include "hamlyn/lower.hpp"
#include "hamlyn/manager.hpp"
#include "hamlyn/memory.hpp"
#include "hamlyn/one_sided.hpp"
#include "hamlyn/protocols.hpp"
#if __cplusplus >= 202002L && defined(__linux__)
#include "hamlyn/coroutines.hpp"
#endif

#endif // HAMLYN_HPP
