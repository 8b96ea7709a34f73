// Tasks of C++20 on an event loop: one manager, several end points, each with a task that awaits it; and one that awaits a signal.
//
//     tasks listen 3           # ends after three messages, whichever way they come, or by SIGINT or SIGTERM
//     tasks say "over here"
//     tasks count 7
#include <hamlyn.hpp>
#include <hamlyn/coroutines.hpp>

#include <csignal>
#include <iostream>
#include <string>
#include <sys/signalfd.h>

using namespace std::chrono_literals;

namespace {

// Ends the loop: what no task catches, event_loop::run throws.
struct ended {};

void print(const std::string &line, int &left) {
    std::cout << line << std::endl;
    if (--left == 0) {
        throw ended{};
    }
}

hamlyn::task<void> texts(hamlyn::event_loop &loop, hamlyn::datagram_receiver &inbox, int &left) {
    for (;;) {
        auto message = co_await loop.recv(inbox);
        print(std::string(message.text()), left);
    }
}

hamlyn::task<void> numbers(hamlyn::event_loop &loop, hamlyn::tag_receiver &tags, int &left) {
    for (;;) {
        const auto tag = co_await loop.recv(tags);
        print("number " + std::to_string(tag), left);
    }
}

hamlyn::task<void> signals(hamlyn::event_loop &loop, int descriptor) {
    co_await loop.readable(descriptor);
    std::cout << "ended by a signal\n";
    throw ended{};
}

void listen(int count) {
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigprocmask(SIG_BLOCK, &ending, nullptr);
    const int descriptor = signalfd(-1, &ending, SFD_CLOEXEC);

    hamlyn::manager listener("listener");
    auto inbox = listener.bind_datagram("texts", 256);
    auto tags = listener.bind_tagged_write("numbers", 64, 64);
    // What tasks use lives longer than the loop.
    hamlyn::event_loop loop(listener);
    loop.spawn(texts(loop, inbox, count));
    loop.spawn(numbers(loop, tags, count));
    loop.spawn(signals(loop, descriptor));
    try {
        loop.run();
    } catch (const ended &) {
    }
    close(descriptor);
}

void say(const std::string &text) {
    hamlyn::manager me;
    auto texts = me.connect_datagram("listener/texts", 10s);
    texts.send(text, 10s);
    me.flush(10s);
}

void count(std::uint64_t number) {
    hamlyn::manager me;
    auto numbers = me.connect_tagged_write("listener/numbers", 10s);
    numbers.send(0, {}, number, 10s);
    me.flush(10s);
}

} // namespace

int main(int argc, char **argv) try {
    const std::string does = argc == 3 ? argv[1] : "";
    if (does == "listen") {
        listen(std::stoi(argv[2]));
    } else if (does == "say") {
        say(argv[2]);
    } else if (does == "count") {
        count(std::stoull(argv[2]));
    } else {
        std::cerr << "usage: tasks listen COUNT | tasks say TEXT | tasks count NUMBER\n";
        return 2;
    }
    return 0;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
