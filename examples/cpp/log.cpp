// A stream of records: lines of standard input at one end, standard output at the other, read where they landed.
//
//     log collect > all.log
//     journalctl | log send
#include <hamlyn.hpp>

#include <iostream>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

static void collect() {
    hamlyn::manager collector("collector");
    auto lines = collector.bind_stream("log");
    // The loop ends when the sender has finished; a sender that died in the middle is an error.
    for (auto &line : lines) {
        std::cout << line.text() << '\n';
    }
    if (!std::cout.flush()) {
        throw std::runtime_error("standard output cannot be written");
    }
}

static void send() {
    hamlyn::manager me;
    auto log = me.connect_stream("collector/log", 10s);
    for (std::string line; std::getline(std::cin, line);) {
        log.send(line);
    }
    // What could not be read is not the end. To close the stream would tell the collector that it is, so it is left to die with this program.
    if (std::cin.bad()) {
        log.release();
        throw std::runtime_error("standard input cannot be read");
    }
    log.finish();
}

int main(int argc, char **argv) try {
    // As long as C's input is read through it, std::cin does not tell an error from the end.
    std::ios::sync_with_stdio(false);
    const std::string does = argc == 2 ? argv[1] : "";
    if (does == "collect") {
        collect();
    } else if (does == "send") {
        send();
    } else {
        std::cerr << "usage: log collect | log send\n";
        return 2;
    }
    return 0;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
