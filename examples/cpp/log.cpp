// A stream of records: lines of standard input at one end, standard output at the other, read where they landed.
//
//     log collect > all.log
//     journalctl | log send
#include <hamlyn.hpp>

#include <iostream>
#include <string>

using namespace std::chrono_literals;

static void collect() {
    hamlyn::manager collector("collector");
    auto lines = collector.bind_stream("log");
    // The loop ends when the sender has finished; a sender that died in the middle is an error.
    for (auto &line : lines) {
        std::cout << line.text() << '\n';
    }
}

static void send() {
    hamlyn::manager me;
    auto log = me.connect_stream("collector/log", 10s);
    for (std::string line; std::getline(std::cin, line);) {
        log.send(line);
    }
    log.finish();
}

int main(int argc, char **argv) try {
    const std::string does = argc == 2 ? argv[1] : "";
    if (does == "collect") {
        collect();
    } else if (does == "send") {
        send();
    } else {
        std::cerr << "usage: log collect | log send\n";
        return 2;
    }
    return std::cout.flush() ? 0 : 1;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
