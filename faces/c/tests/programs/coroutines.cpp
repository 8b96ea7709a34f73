// Tasks of two managers and of a pipe on one event loop: hamlyn/coroutines.hpp, and the classes of hamlyn/lower.hpp.
#include "checks.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace std::chrono_literals;

namespace {

struct terms {
    std::int64_t first, second;
};

constexpr int CALLS = 100;

hamlyn::task<void> serve(hamlyn::event_loop &loop, hamlyn::service &sums) {
    for (int calls = 0; calls < CALLS; calls++) {
        auto call = co_await loop.recv(sums);
        const auto given = call.as<terms>();
        IS(given);
        call.reply(hamlyn::value_of(given->first + given->second));
    }
}

hamlyn::task<std::int64_t> add(hamlyn::event_loop &loop, hamlyn::client &sums, terms of) {
    auto pending = sums.start(hamlyn::value_of(of));
    auto reply = co_await loop.take(sums, pending);
    co_return reply.as<std::int64_t>().value();
}

hamlyn::task<void> ask(hamlyn::event_loop &loop, hamlyn::client &sums, hamlyn::datagram_sender &outbox, int &ended) {
    for (std::int64_t i = 0; i < CALLS; i++) {
        const auto sum = co_await add(loop, sums, terms{i, 2 * i});
        IS(sum == 3 * i);
    }
    co_await loop.send(outbox, "done");
    ended++;
}

hamlyn::task<void> listen(hamlyn::event_loop &loop, hamlyn::datagram_receiver &inbox, int to, int &ended) {
    auto datagram = co_await loop.recv(inbox);
    IS(datagram.text() == "done");
    IS(write(to, "x", 1) == 1);
    ended++;
}

hamlyn::task<void> post(hamlyn::event_loop &loop, hamlyn::mailbox_sender &letters, int &ended) {
    for (std::int64_t i = 0; i < CALLS; i++) {
        co_await loop.send(letters, hamlyn::value_of(terms{i, -i}));
    }
    ended++;
}

hamlyn::task<void> collect(hamlyn::event_loop &loop, hamlyn::mailbox_receiver &mailbox, int &ended) {
    for (std::int64_t i = 0; i < CALLS; i++) {
        const auto mail = co_await loop.recv(mailbox);
        IS(mail.as<terms>()->first == i && mail.sender()->process == static_cast<unsigned>(getpid()));
    }
    ended++;
}

hamlyn::task<void> read_pipe(hamlyn::event_loop &loop, int from, int &ended) {
    co_await loop.readable(from);
    char read_byte = 0;
    IS(read(from, &read_byte, 1) == 1 && read_byte == 'x');
    ended++;
}

hamlyn::task<void> fails(hamlyn::event_loop &loop, hamlyn::stream_receiver &log) {
    for (;;) {
        auto record = co_await loop.recv(log);
        IS(record.text() == "only");
    }
}

void tasks() {
    hamlyn::manager server("server"), client("client");
    hamlyn::event_loop loop(server);
    loop.add(client);
    auto service = server.bind_service("sums");
    auto sums = client.connect_service("server/sums", 60s);
    auto inbox = server.bind_datagram("inbox", 64);
    auto outbox = client.connect_datagram("server/inbox", 60s);
    auto mailbox = server.bind_mailbox("mail");
    auto letters = client.grow_mailbox(mailbox.ticket(), 60s);
    std::array<int, 2> pipe_ends;
    IS(pipe(pipe_ends.data()) == 0);
    int ended = 0;
    loop.spawn(serve(loop, service));
    loop.spawn(ask(loop, sums, outbox, ended));
    loop.spawn(listen(loop, inbox, pipe_ends[1], ended));
    loop.spawn(read_pipe(loop, pipe_ends[0], ended));
    loop.spawn(post(loop, letters, ended));
    loop.spawn(collect(loop, mailbox, ended));
    loop.run();
    IS(ended == 5);
    close(pipe_ends[0]);
    close(pipe_ends[1]);

    // A failure that no task catches ends the loop, and says what it is.
    auto log = server.bind_stream("log");
    auto writer = client.connect_stream("server/log", 60s);
    writer.send("only", 60s);
    writer.finish(60s);
    loop.spawn(fails(loop, log));
    try {
        loop.run();
        IS(!"it threw nothing");
    } catch (const hamlyn::error &error) {
        IS(error.code() == HAMLYN_FINISHED);
    }
    loop.run();
}

void lower() {
    hamlyn::manager server("lower-server"), client("lower-client");
    hamlyn::area area(server, 4096);
    hamlyn::queue queue(server, 16);
    hamlyn::slot_options options{};
    options.queue = queue.get();
    options.rights = HAMLYN_RIGHT_WRITE | HAMLYN_RIGHT_READ | HAMLYN_RIGHT_ATOMIC;
    options.entries = 1;
    hamlyn::slot slot(server, area, options);
    hamlyn::terminus terminus(client);
    hamlyn::target target(terminus, slot.fast_ticket(0, 4096), 60s);
    target.send(8, hamlyn::value_of(terms{3, 4}), 17, 60s);
    auto came = queue.recv(60s);
    IS(came && came->word == 17 && came->slot == slot.number() && came->entry == HAMLYN_NO_ENTRY);
    IS(area.read<terms>(8).second == 4);
    IS(!queue.recv(hamlyn::wait::poll()));
    IS(slot.info().entries == 1 && slot.entry(0).armed == 0);

    // Within one manager, so that its own calls answer.
    hamlyn::initiator self(server, slot.fast_ticket(0, 4096));
    self.put(64, "abc", 60s);
    IS(self.read<char>(65, 60s) == 'b');
    IS(self.add(128, 5, 60s) == 0 && self.add(128, 5, 60s) == 5);
    slot.revoke();
    try {
        self.put(64, "abc", 60s);
        IS(!"it threw nothing");
    } catch (const hamlyn::error &error) {
        IS(error.code() == HAMLYN_REFUSED);
    }
    slot.rekey();

    // Values of one type, and what is none.
    hamlyn::typed<terms, hamlyn::datagram_receiver> inbox(server.bind_datagram("typed", 64));
    hamlyn::typed<terms, hamlyn::datagram_sender> outbox(client.connect_datagram("lower-server/typed", 60s));
    outbox.send(terms{1, 2}, 60s);
    IS(inbox.recv(60s)->second == 2);
    outbox.bytes_end().send("no terms", 60s);
    auto none = inbox.try_recv(60s);
    IS(!none && none.code() == HAMLYN_MALFORMED);
    IS(!inbox.recv(hamlyn::wait::poll()));

    hamlyn::typed<terms, hamlyn::mailbox_receiver> mailbox(server.mailbox());
    hamlyn::typed<terms, hamlyn::mailbox_sender> letters(client.grow_mailbox(mailbox.bytes_end().ticket(), 60s));
    letters.send(terms{5, 6}, 60s);
    IS(mailbox.recv(60s)->second == 6);
    mailbox.bytes_end().revoke();
    letters.send(terms{7, 8}, 60s);
    IS(!mailbox.recv(hamlyn::wait::poll()));

    server.offer("item", "offered");
    IS(client.ask("lower-server", "item", 60s) == "offered");

    // Records that are kept.
    auto log = server.bind_stream("log");
    auto writer = server.connect_stream("lower-server/log", 60s);
    writer.send("first", 60s);
    writer.send("second", 60s);
    writer.flush(60s);
    auto first = log.recv(60s)->keep();
    auto second = log.recv(60s)->keep();
    IS(std::string_view(static_cast<const char *>(log.view(first).data()), 5) == "first");
    first.close();
    second.close();
}

} // namespace

int main() {
    tasks();
    lower();
    std::puts("passed");
}
