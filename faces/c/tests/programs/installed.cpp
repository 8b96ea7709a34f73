// As installed.c, by the classes. An error crosses the library and is caught here.
#include <hamlyn.hpp>
#include <iostream>
#include <string_view>

int main() try {
    using namespace std::chrono_literals;
    hamlyn::manager manager("installed");
    auto inbox = manager.bind_datagram("inbox", 64);
    auto outbox = manager.connect_datagram("installed/inbox", 60s);
    outbox.send(std::string_view("it works"));
    auto message = inbox.recv(60s);
    std::cout << std::string_view(reinterpret_cast<const char *>(message->data()), message->size()) << std::endl;
    try {
        manager.bind_datagram("inbox", 64);
        return 1;
    } catch (const hamlyn::error &) {
    }
    return 0;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
