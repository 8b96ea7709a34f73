// Revocation: a service that dismisses a client which asks for what it must not. Its key is worthless from then on; others are
// served as before.
//
//     bouncer serve 2               # ends after two good calls
//     bouncer ask public            # prints the answer
//     bouncer ask secret public     # is dismissed, and gets no answer to the other call either
#include <hamlyn.hpp>

#include <iostream>
#include <string>

using namespace std::chrono_literals;

static void serve(int calls) {
    hamlyn::manager door("door");
    auto service = door.bind_service("service");
    while (calls > 0) {
        auto call = service.recv();
        if (call->text() != "secret") {
            call->reply("come in");
            calls--;
            continue;
        }
        // A client whose link ended meanwhile is known no more.
        const auto client = call->client();
        call->dismiss();
        if (client) {
            std::cout << "process " << client->process << " of user " << client->user << " is dismissed\n";
        }
    }
    // The last answer has left this program before it ends.
    door.flush(10s);
}

static void ask(int count, char **calls) {
    hamlyn::manager me;
    auto door = me.connect_service("door/service", 10s);
    for (int i = 0; i < count; i++) {
        auto answer = door.try_call(calls[i], 10s);
        std::cout << (answer ? answer->text() : answer.text()) << '\n';
    }
}

int main(int argc, char **argv) try {
    const std::string does = argc >= 3 ? argv[1] : "";
    if (does == "serve") {
        serve(std::stoi(argv[2]));
    } else if (does == "ask") {
        ask(argc - 2, argv + 2);
    } else {
        std::cerr << "usage: bouncer serve CALLS | bouncer ask WHAT...\n";
        return 2;
    }
    return 0;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
