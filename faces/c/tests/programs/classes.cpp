// Both sides of every protocol through the classes of hamlyn.hpp: `classes serve` and `classes ask`.
#include "checks.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;

namespace {

struct point {
    double x, y;
    std::int32_t number;
};

void serve() {
    hamlyn::manager manager("server");
    auto inbox = manager.bind_datagram("inbox", 4096);
    auto mail = manager.bind_mailbox("mail", {1 << 16, 0});
    auto log = manager.bind_stream("log");
    auto board = manager.bind_tagged_write("board", 4096, 16);
    auto sums = manager.bind_service("sums");
    auto parts = manager.bind_group("parts", 8);
    auto frames = manager.bind_publisher("frames", {1 << 16, 4, 2, 4, HAMLYN_BLOCK});
    throws(HAMLYN_TAKEN, [&] { manager.bind_datagram("inbox", 64); });
    hamlyn_stream_options ahead{};
    ahead.ahead = 1;
    ahead.piece_bytes = 2048;
    throws(HAMLYN_INVALID, [&] { manager.bind_stream("ahead", ahead); });
    ahead.piece_bytes = 4096;
    ahead.limit_bytes = 1 << 20;
    auto all_at_once = manager.stream(ahead);
    auto filling = manager.grow_stream(all_at_once.seed());
    for (int number = 0; number < 256; number++) {
        filling.send(std::string(4096, char(number)), 60s);
    }
    for (int number = 0; number < 256; number++) {
        IS(all_at_once.recv()->text() == std::string(4096, char(number)));
    }

    {
        auto hello = inbox.recv();
        IS(hello && hello->text() == "hello");
        IS(hello->sender()->user == geteuid());
        throws(HAMLYN_HELD, [&] { inbox.recv(hamlyn::wait::poll()); });
        auto answer = manager.grow_datagram(*hello->reply_ticket());
        answer.send(hamlyn::value_of(point{1.5, 2.5, 7}));
        answer.fence(60s);
    }
    IS(!inbox.recv(1ms));

    int mails = 0;
    for (auto &&message : mail) {
        IS(message.sender()->process != 0 && message.as<std::int32_t>() == mails);
        if (++mails == 10) {
            break;
        }
    }
    IS(!mail.recv(1ms) && mail.try_recv(hamlyn::wait::poll()).has_value());
    IS(mail.info().queue_bytes == 1 << 16 && mail.refusals(HAMLYN_REFUSED_QUEUE_FULL) == 0);

    int count = 0;
    for (auto &&record : log) {
        IS(record.size() == std::size_t(count) * 3);
        IS(record.empty() || record.data()[record.size() - 1] == std::byte(count));
        count++;
    }
    IS(count == 100);
    throws(HAMLYN_FINISHED, [&] { log.recv(); });
    IS(log.try_recv(hamlyn::wait::poll()).code() == HAMLYN_FINISHED);

    IS(*board.recv() == 42);
    IS(board.read<std::uint64_t>(8) == 0x1234);
    throws(HAMLYN_INVALID, [&] { board.read<std::uint64_t>(4090); });

    hamlyn::deferred_call later;
    std::vector<std::byte> kept;
    for (int number = 0; number < 3; number++) {
        auto call = sums.recv();
        IS(call && call->client()->process != 0);
        const auto value = call->as<std::int32_t>();
        IS(value && *value == number && !call->as<std::int64_t>());
        if (number == 0) {
            later = call->defer();
        } else if (number == 1) {
            call->reply(hamlyn::value_of(*value + 100));
        } // The third is dropped.
    }
    sums.reply(std::move(later), hamlyn::value_of(std::int32_t(100)));

    const std::array<std::uint64_t, 2> lengths{4, 4};
    parts.begin(lengths.data(), lengths.size());
    const auto all = parts.recv();
    IS(all && all->size() == 8 && std::memcmp(all->data(), "onestwos", 8) == 0);

    frames.await_readers(1);
    {
        auto unused = frames.loan(10); // Goes unpublished.
    }
    auto loan = frames.loan(1 << 16);
    std::memset(loan.data(), 0x77, loan.size());
    IS(loan.publish() == 1);

    IS(inbox.recv()->text() == "bye");
    for (;;) {
        auto event = manager.next_event(60s);
        IS(event && !event->text.empty());
        if (event->what.kind == HAMLYN_PEER_LEFT) {
            break;
        }
    }
}

void ask() {
    hamlyn::manager manager(hamlyn::options().shared());
    throws(HAMLYN_NOT_FOUND, [&] { manager.connect_datagram("nobody/inbox", 1ms); });
    auto answers = manager.datagram(64);
    auto outbox = manager.connect_datagram("server/inbox", 60s);
    const auto ticket = answers.ticket();
    outbox.send_to(0, "hello", &ticket);
    const auto answer = answers.recv(60s)->as<point>();
    IS(answer && answer->x == 1.5 && answer->number == 7);
    const auto too_long = outbox.try_send(std::vector<char>(5000));
    IS(!too_long && too_long.code() == HAMLYN_TOO_LONG && std::strlen(too_long.text()) > 5);

    // Another thread has a handle of its own.
    std::thread([another = manager.share()]() mutable { another.poll(); }).join();

    auto mail = manager.connect_mailbox("server/mail", 60s);
    for (std::int32_t number = 0; number < 10; number++) {
        mail.send(hamlyn::value_of(number));
    }
    mail.fence(60s);
    IS(mail.message_bytes_max() == 1 << 16);
    IS(mail.try_send(std::vector<char>((1 << 16) + 1)).code() == HAMLYN_TOO_LONG);

    auto log = manager.connect_stream("server/log", 60s);
    for (int number = 0; number < 100; number++) {
        log.send(std::vector<std::byte>(std::size_t(number) * 3, std::byte(number)));
    }
    log.finish();
    log.close();

    auto board = manager.connect_tagged_write("server/board", 60s);
    board.send(8, hamlyn::value_of(std::uint64_t(0x1234)), 42);
    board.fence(60s);

    auto sums = manager.connect_service("server/sums", 60s);
    auto first = sums.start(hamlyn::value_of(std::int32_t(0)));
    IS(*sums.call(hamlyn::value_of(std::int32_t(1)), 60s).as<std::int32_t>() == 101);
    throws(HAMLYN_REFUSED, [&] { sums.call(hamlyn::value_of(std::int32_t(2)), 60s); });
    IS(*sums.take(first, 60s)->as<std::int32_t>() == 100);

    auto one = manager.connect_group("server/parts", 60s), two = manager.connect_group("server/parts", 60s);
    two.send_last(0, "twos");
    one.send(0, "on");
    one.send_last(2, "es");

    auto frames = manager.connect_subscriber("server/frames", 60s);
    {
        auto frame = frames.recv(60s);
        IS(frame && frame->size() == 1 << 16);
        std::vector<unsigned char> copy(frame->size());
        frame->read(0, copy.data(), copy.size());
        IS(copy.front() == 0x77 && copy.back() == 0x77);
    }
    outbox.send("bye");
    manager.fence(60s);
}

} // namespace

int main(int argc, char **argv) {
    IS(argc >= 2);
    try {
        std::string_view(argv[1]) == "serve" ? serve() : ask();
    } catch (const hamlyn::error &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    std::puts("passed");
    return 0;
}
