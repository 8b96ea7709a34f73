// The lower layer, one-sided operations, and memory that is given to others, through the classes of hamlyn.hpp: two managers of one program.
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

constexpr std::uint32_t ALL_RIGHTS = HAMLYN_RIGHT_WRITE | HAMLYN_RIGHT_READ | HAMLYN_RIGHT_ATOMIC;

// Both move packets until it is so.
template <class F>
void until(hamlyn::manager &one, hamlyn::manager &other, F is_so) {
    while (!is_so()) {
        one.poll();
        other.poll();
    }
}

void messages(hamlyn::manager &here, hamlyn::manager &there) {
    hamlyn::area area(there, 4096);
    IS(area.size() == 4096);
    area.fill(0, 64, 0x11);
    area.store(64, 7);
    IS(area.load(64) == 7 && area.read<std::uint8_t>(63) == 0x11);
    IS(area.change(64, {HAMLYN_CHANGE_ADD, 64, 5, 0}) == 7 && area.load(64) == 12);
    hamlyn::queue queue(there, 16);
    IS(queue.entries() == 16 && queue.lost() == 0);
    hamlyn::slot_options options{};
    options.queue = queue.get();
    hamlyn::slot slot(there, area, options);
    hamlyn::terminus terminus(here);
    const auto ticket = slot.fast_ticket(0, 4096);
    IS(hamlyn::info(ticket).length_bytes == 4096);
    hamlyn::target target(terminus, hamlyn::narrowed(ticket, 1024, 64), 60s);
    hamlyn::outgoing_message message{};
    message.data = "one";
    message.length_bytes = 3;
    message.word = 1;
    const auto first = target.send(message, 60s);
    std::array<hamlyn::outgoing_message, 3> row{message, message, message};
    for (std::size_t at = 0; at < row.size(); at++) {
        row[at].word = at + 2;
    }
    std::uint64_t last = 0;
    IS(target.send_many(row.data(), row.size(), 60s, &last) == 3 && last == first + 3);
    std::array<hamlyn::notification, 16> came{};
    std::size_t count = 0;
    until(here, there, [&] { return (count += queue.recv_many(came.data() + count, came.size() - count)) == 4; });
    for (std::size_t at = 0; at < count; at++) {
        IS(came[at].word == at + 1 && came[at].slot == slot.number());
    }
    IS(area.read<char>(1024) == 'o');
    IS(target.completion(last) == HAMLYN_MESSAGE_SENT);
    target.retarget(ticket);
    hamlyn::area gathered(here, 64);
    gathered.write(0, "gathered");
    const auto tag = terminus.bind(gathered, 0, 64);
    const std::array<hamlyn::piece, 2> pieces{hamlyn::piece{4, 4, tag}, hamlyn::piece{0, 4, tag}};
    target.send_gather(message, pieces.data(), pieces.size());
    until(here, there, [&] { return queue.recv_many(came.data(), 1) == 1; });
    std::array<char, 8> found{};
    area.read(0, found.data(), found.size());
    IS(std::memcmp(found.data(), "eredgath", 8) == 0);
    terminus.unbind(tag);
    // A ticket from before is refused, and that is told.
    slot.revoke();
    target.send(message, 60s);
    until(here, there, [&] { return slot.info().refusals == 1; });
    std::uint64_t refusals = 0;
    for (std::uint32_t reason = 0; reason < 64 && refusals == 0; reason++) {
        auto of_slot = [&] { return slot.refusals(reason); };
        try {
            refusals = of_slot();
        } catch (const hamlyn::error &) {
            break;
        }
        if (refusals != 0) {
            IS(!hamlyn::refusal_text(reason).empty() && there.refusals(reason) >= 1);
        }
    }
    IS(refusals == 1);
    std::optional<hamlyn::undelivered> lost;
    until(here, there, [&] { return (lost = here.next_undelivered()).has_value(); });
    IS(!lost->text.empty() && here.undelivered_forgotten() == 0);
}

void entries(hamlyn::manager &here, hamlyn::manager &there) {
    hamlyn::area area(there, 4096);
    hamlyn::queue queue(there, 16);
    hamlyn::slot_options options{};
    options.queue = queue.get();
    options.entries = 1;
    hamlyn::slot slot(there, area, options);
    slot.set_class(0, 5);
    slot.arm(0);
    IS(slot.entry(0).receive_class == 5);
    slot.disarm(0);
    slot.reset(0);
    slot.permit(0, there.new_key(), 0, 4096);
    IS(hamlyn::packets_needed(100000, 0, 1000) == 100);
    const std::array<std::uint64_t, 2> needed{2, 3};
    std::array<std::uint64_t, 2> parts{};
    hamlyn::divide_share(0, 64, needed.data(), parts.data(), parts.size());
    IS(parts[0] >= 2 && parts[1] >= 3 && parts[0] + parts[1] == 0);
    hamlyn::slot_options storing{};
    storing.entries = 1;
    storing.counts_stores = 1;
    hamlyn::slot counted(there, area, storing);
    hamlyn::terminus terminus(here);
    hamlyn::target stores(terminus, counted.entry_ticket(0, 0, 4096), 60s);
    stores.store(8, "12345678", 60s);
    until(here, there, [&] { return counted.stored(0) == 8; });
}

void pieces(hamlyn::manager &here, hamlyn::manager &there) {
    hamlyn::handover memory(there, 2, 64);
    hamlyn::queue queue(there, 16);
    hamlyn::slot_options options{};
    options.queue = queue.get();
    options.entries = 1;
    options.mode = HAMLYN_MODE_ONE_SHOT;
    hamlyn::slot slot(there, memory.area(), options);
    throws(HAMLYN_HELD, [&] { hamlyn::slot second(there, memory.area()); });
    slot.permit(0, there.new_key(), 0, 64);
    hamlyn::terminus terminus(here);
    hamlyn::target target(terminus, slot.entry_ticket(0, 0, 64), 60s);
    hamlyn::area texts(here, 64);
    texts.write(0, "metadata");
    const auto tag = terminus.bind(texts, 0, 64);
    const auto metadata = terminus.gather_metadata({0, 8, tag});
    IS(metadata == "metadata");
    throws(HAMLYN_TOO_LONG, [&] { terminus.gather_metadata({0, 61, tag}); });
    terminus.unbind(tag);
    hamlyn::outgoing_message message{};
    message.data = "piece";
    message.length_bytes = 5;
    message.metadata = metadata.data();
    message.metadata_bytes = metadata.size();
    for (int round = 0; round < 3; round++) {
        memory.open(0);
        IS(!memory.is_held(0) && memory.is_held(1) && memory.info().held == 1);
        IS(memory.try_view(0, 1).code() == HAMLYN_HELD);
        slot.arm(0);
        target.send(message, 60s);
        IS(queue.recv(60s) && slot.entry(0).metadata_bytes == 8);
        auto view = memory.view(0, 5);
        IS(view.text() == "piece" && memory.is_held(0));
        // As long as one of them is there, the piece stays.
        auto moved = std::move(view);
        auto second = memory.view(4, 100);
        IS(second.text()[0] == 'e' && memory.info().viewed == 2);
        moved.end_view();
        throws(HAMLYN_HELD, [&] { memory.open(0); });
        second = memory.view(64, 64);
        IS(memory.try_open(0) && memory.try_open(1).code() == HAMLYN_HELD);
    }
}

void pools(hamlyn::manager &here, hamlyn::manager &there) {
    const auto link = here.connect("there", 60s);
    there.poll();
    const auto peers = there.peers();
    IS(peers.size() == 1);
    hamlyn::pool pool(1000, 2);
    auto first = pool.take(5);
    IS(first && first->size() == 5);
    std::memcpy(first->data(), "frame", 5);
    {
        auto second = pool.take(8);
        IS(second && !pool.take(1) && pool.info().free == 0);
    }
    throws(HAMLYN_TOO_LONG, [&] { pool.take(1001); });
    hamlyn::shared_pool shared(here, link, pool.show(there, peers[0].link), 60s);
    const auto hidden = pool.show(there, peers[0].link);
    hamlyn::pool::hide(there, hidden);
    throws(HAMLYN_NOT_FOUND, [&] { hamlyn::shared_pool none(here, link, hidden, 60s); });
    IS(shared.size() == pool.info().length_bytes);
    IS(shared.read<char>(first->offset() + 1) == 'r' && shared.at(first->offset(), 5)[4] == std::byte{'e'});
    throws(HAMLYN_INVALID, [&] { shared.at(shared.size(), 1); });
    const auto offset = first->offset();
    const auto number = first->keep();
    first.reset();
    IS(pool.info().free == 1);
    pool.give_back(number);
    throws(HAMLYN_INVALID, [&] { pool.give_back(number); });
    pool.close();
    IS(shared.read<char>(offset) == 'f');

    // Where nothing is: something was there just now.
    void *place = nullptr;
    {
        hamlyn::area somewhere(here, 65536, HAMLYN_AREA_SPARSE);
        hamlyn::window window(somewhere, 0, 65536);
        place = window.info().data;
        throws(HAMLYN_TAKEN, [&] { hamlyn::area::at(here, 65536, place); });
    }
    const auto there_again = hamlyn::area::at(here, 65536, place);
    IS(hamlyn::window(there_again, 0, 65536).info().data == place);
}

void operate(hamlyn::initiator &initiator, hamlyn::manager &here) {
    initiator.put(0, hamlyn::value_of(std::uint64_t{40}), 60s);
    IS(initiator.add(0, 2, 60s) == 40 && initiator.read_word(0, 60s) == 42 && initiator.read<std::uint64_t>(0, 60s) == 42);
    const auto put = initiator.begin_put(8, "abcdefgh", 60s);
    const auto change = initiator.begin_change(0, {HAMLYN_CHANGE_ADD, 64, 1, 0}, 60s);
    IS(initiator.finish(put, 60s) && initiator.finish_word(change, 60s) == 42u);
    const auto word = initiator.begin_read_word(0, 60s);
    IS(initiator.finish_word(word, 60s) == 43u);
    std::array<char, 8> found{};
    IS(initiator.finish(initiator.begin_read(8, 0, 8, 60s), 60s));
    initiator.landed(0, found.data(), found.size());
    IS(std::memcmp(found.data(), "abcdefgh", 8) == 0);
    hamlyn::strided rows{};
    rows.offset = 64;
    rows.piece_bytes = 4;
    rows.stride_bytes = 16;
    rows.pieces = 2;
    IS(initiator.finish(initiator.begin_put(rows, "rowsROWS", 60s), 60s));
    IS(initiator.finish(initiator.begin_read(rows, 16, 60s), 60s));
    initiator.landed(16, found.data(), found.size());
    IS(std::memcmp(found.data(), "rowsROWS", 8) == 0 && initiator.read<char>(80, 60s) == 'R');
    const std::array<std::uint64_t, 2> places{256, 128};
    IS(initiator.finish(initiator.begin_put(places.data(), 2, 2, "xyzw", 60s), 60s));
    IS(initiator.finish(initiator.begin_read(places.data(), 2, 2, 32, 60s), 60s));
    initiator.landed(32, found.data(), 4);
    IS(std::memcmp(found.data(), "xyzw", 4) == 0 && initiator.read<char>(128, 60s) == 'z');

    hamlyn::completion_counter counter;
    for (int i = 0; i < 3; i++) {
        initiator.count(initiator.begin_change(0, {HAMLYN_CHANGE_ADD, 64, 1, 0}, 60s), counter);
    }
    IS(counter.await(here, 3, 60s) && !counter.await(here, 4, hamlyn::wait::poll()));
    IS(counter.completed() == 3 && counter.failed() == 0);
    IS(initiator.finish_all(60s) && initiator.outstanding() == 0 && initiator.read_word(0, 60s) == 46);
}

// The target answers in its own thread, as another program would.
void operations(hamlyn::manager &here, const hamlyn::ticket &all, const hamlyn_region_ticket &shared) {
    {
        hamlyn::initiator initiator(here, all, 4096, 60s);
        operate(initiator, here);
        throws(HAMLYN_NOT_FOUND, [&] { hamlyn::window none(initiator); });
    }
    hamlyn::attached memory(here, shared, 60s);
    IS(memory.try_check());
    hamlyn::initiator initiator(here, all, 4096, 60s);
    operate(initiator, here);
    hamlyn::window window(initiator), whole = memory.window();
    IS(window.info().length_bytes == 65536 && window.info().is_writable && window.info().lasts);
    window.write(64, hamlyn::value_of(std::uint64_t{10}));
    IS(window.change(64, {HAMLYN_CHANGE_ADD, 64, 1, 0}) == 10 && whole.read<std::uint64_t>(64) == 11);
}

void placed(hamlyn::manager &here, hamlyn::manager &there) {
    hamlyn::area area(there, 65536, HAMLYN_AREA_SHARED);
    hamlyn::queue queue(there, 16);
    hamlyn::slot_options options{};
    options.queue = queue.get();
    hamlyn::slot slot(there, area, options);
    hamlyn::window own(area, 0, 4096);
    own.write(0, "own");
    IS(area.read<char>(2) == 'n');
    const auto peers = there.peers();
    IS(peers.size() == 1 && there.try_check(peers[0].link) && there.link_peer(peers[0].link).user == getuid());
    IS(there.link_peer_name(peers[0].link) == "here");
    const std::pair<std::size_t, std::size_t> none(0, 0), one_shared(1, 0), one_attached(0, 1);
    {
        hamlyn::region ends_by_itself(slot, 0, 65536, HAMLYN_REGION_WRITABLE, peers[0].link);
        IS(there.regions() == one_shared);
        hamlyn::attached detached(here, ends_by_itself.ticket(), 60s);
        IS(here.regions() == one_attached);
    }
    IS(there.regions() == none && here.regions() == none);
    hamlyn::region region(slot, 0, 65536, HAMLYN_REGION_WRITABLE, peers[0].link);
    hamlyn::attached attached(here, region.ticket(), 60s);
    IS(there.regions() == one_shared && here.regions() == one_attached);
    hamlyn::terminus terminus(here);
    hamlyn::target target(terminus, slot.fast_ticket(0, 65536), 60s);
    const std::vector<char> data(20000, 'g');
    target.send(100, data, 9, 60s);
    IS(queue.recv(60s)->word == 9 && area.read<char>(20099) == 'g');
    attached.close();
    region.revoke();
    IS(there.regions() == none && here.regions() == none);
}

// The owner's library serves it.
void region_ends(const hamlyn::slot &slot) {
    hamlyn::manager user("holder");
    hamlyn::terminus terminus(user);
    hamlyn::target link(terminus, slot.fast_ticket(0, 65536), 60s);
    hamlyn_region_ticket ticket;
    {
        hamlyn::region ends_by_itself(slot, 0, 65536);
        ticket = ends_by_itself.ticket();
        hamlyn::attached memory(user, ticket, 60s);
        IS(memory.try_check());
        ends_by_itself.close();
        IS(memory.try_check().code() == HAMLYN_PEER_LOST);
    }
    hamlyn::region revoked(slot, 0, 65536);
    hamlyn::attached memory(user, revoked.ticket(), 60s);
    revoked.revoke();
    IS(memory.try_check().code() == HAMLYN_PEER_LOST);
    throws(HAMLYN_INVALID, [&] { revoked.revoke(); });
}

// A row of messages ends where something goes wrong, and what was sent before is told first.
void rows(hamlyn::manager &here, hamlyn::manager &there) {
    hamlyn::area area(there, 4096);
    hamlyn::queue ends(there, 2);
    hamlyn::slot_options options{};
    options.queue = ends.get();
    hamlyn::slot slot(there, area, options);
    hamlyn::terminus terminus(here);
    hamlyn::target target(terminus, slot.fast_ticket(0, 4096), 60s);
    const auto send = [&](std::uint64_t word) {
        hamlyn::outgoing_message counted{};
        counted.data = &word;
        counted.length_bytes = sizeof word;
        counted.word = word;
        return target.send(counted, 60s);
    };
    const auto deliver = [&](std::uint64_t first, std::uint64_t last) {
        for (std::uint64_t word = first; word <= last; word++) {
            send(word);
        }
        while (area.load(0) < last) {
            there.poll();
        }
    };
    // The queue has room for the last two.
    deliver(1, 9);
    std::array<hamlyn::notification, 16> came{};
    IS(ends.lost() == 0);
    throws(HAMLYN_OVERRUN, [&] { ends.recv_many(came.data(), came.size()); });
    IS(ends.lost() == 7);
    IS(ends.recv_many(came.data(), came.size()) == 2 && came[0].word == 8 && ends.recv_many(came.data(), came.size()) == 0);
    // As well for one who takes the next by itself.
    deliver(10, 14);
    IS(ends.try_recv(hamlyn::wait::poll()).code() == HAMLYN_OVERRUN && ends.recv(hamlyn::wait::poll()).has_value());

    hamlyn::outgoing_message message{};
    message.data = "one";
    message.length_bytes = 3;
    std::array<hamlyn::outgoing_message, 3> row{message, message, message};
    row[2].data = nullptr;
    std::uint64_t last = 0;
    const auto before = target.send(message, 60s);
    IS(target.send_many(row.data(), row.size(), 60s, &last) == 2 && last == before + 2);
    throws(HAMLYN_INVALID, [&] { target.send_many(&row[2], 1, 60s, &last); });
    IS(last == before + 2);
}

void protocols(hamlyn::manager &here, hamlyn::manager &there) {
    auto inbox = there.bind_datagram("inbox", 64);
    inbox.reset();
    IS(inbox.info().length_bytes == 64);
    auto board = there.bind_tagged_write("board", 4096, 16);
    auto writer = here.connect_tagged_write("there/board", 60s);
    writer.send(0, "one", 1);
    writer.send(8, "two", 2);
    IS(board.recv(2, 60s) && !board.recv(3, hamlyn::wait::poll()) && board.recv(60s) == 1u);
    IS(board.sender()->user == getuid() && board.lost() == 0 && board.info().length_bytes == 4096);
    board.revoke();
    auto log = there.bind_stream("log");
    auto lines = here.connect_stream("there/log", 60s);
    lines.send("line");
    lines.flush();
    {
        auto kept = log.recv(60s)->keep();
        IS(log.view(kept).size() == 4);
    }
    log.reclaim();
    IS(log.info().second > 0);
    auto service = there.bind_service("service");
    auto client = here.connect_service("there/service", 60s);
    IS(client.limits().first > 0 && client.limits().second > 0);
    auto pending = client.start("asked", 60s);
    auto later = service.recv(60s)->defer();
    IS(service.request(later).size() == 5 && service.misbehaved() == 0);
    service.reply(std::move(later), "told");
    IS(client.take(pending, 60s)->text() == "told");
    auto frames = there.bind_publisher("frames", {1024, 4, 2, 2, HAMLYN_BLOCK});
    auto reader = here.connect_subscriber("there/frames", 60s);
    frames.await_readers(1, 60s);
    frames.poll();
    IS(frames.await_room(60s));
    auto loan = frames.loan(5, 60s);
    std::memcpy(loan.data(), "frame", 5);
    IS(loan.publish(60s) == 1);
    {
        auto kept = reader.recv(60s)->keep();
        IS(kept.size() == 5);
    }
    reader.reclaim();
    IS(reader.lost() == 0 && reader.sender().user == getuid() && reader.info().message_bytes_max == 1024);
    auto group = there.bind_group("parts", 8);
    IS(group.info().length_bytes == 8);
    // A stream and a group that have no name.
    auto unnamed = there.stream();
    auto grown = here.grow_stream(unnamed.seed(), 60s);
    grown.send("from a seed");
    grown.flush();
    IS(unnamed.recv(60s)->text() == "from a seed");
    auto parts = there.group(8);
    const auto halves = hamlyn::divided(parts.begin(), {4, 4});
    auto first = here.grow_group(halves[0], 60s), second = here.grow_group(halves[1], 60s);
    second.send_last(0, "last");
    first.send(0, "fi");
    // What another thread may not take stays where it is.
    std::thread([&] { throws(HAMLYN_OTHER_THREAD, [&] { std::move(first).into_member(); }); }).join();
    const auto rest = std::move(first).into_member();
    IS(first.get() == nullptr);
    here.grow_group(hamlyn::divided(rest, {4})[0], 60s).send_last(2, "st");
    const auto all = parts.recv(60s);
    IS(all && std::memcmp(all->data(), "fistlast", 8) == 0);
    throws(HAMLYN_INVALID, [&] { hamlyn::divided(halves[0], {5}); });
    throws(HAMLYN_FINISHED, [&] { std::move(second).into_member(); });
    IS(second.get() == nullptr);
    IS(there.notifications_lost() == 0);
}

void managers() {
    hamlyn::manager one("one");
    hamlyn::manager two(hamlyn::options().name("two").access({geteuid()}).network_off().spin(1us));
    throws(HAMLYN_REFUSED, [&] {
        hamlyn::manager closed(hamlyn::options().name("closed").access({geteuid() + 1}));
        two.connect("closed", 60s);
    });
    one.set_bad_keys_max(10);
    one.offer("item", "offered");
    one.offer("last", "gone", HAMLYN_OFFER_ONCE);
    IS(two.ask("one", "last", 60s) == "gone");
    const auto link = two.connect("one", 60s);
    IS(two.identity().user == getuid() && two.ask("one", "item", 60s) == "offered");
    one.withdraw("item");
    two.fence(link, 60s);
    throws(HAMLYN_NOT_FOUND, [&] { two.link_state(link); });
    IS(two.log_use(link).log_bytes == 16u << 20);
    two.await(1ms);
    two.disconnect(link);
    IS(two.try_check(link).code() == HAMLYN_PEER_LOST);
    // It goes to another thread and comes back.
    auto moved = two.detach();
    std::thread([&] {
        auto there = moved.attach();
        there.poll();
        moved = there.detach();
    }).join();
    moved.attach().poll();
}

} // namespace

int main() {
    try {
        hamlyn::manager here("here"), there("there");
        messages(here, there);
        rows(here, there);
        entries(here, there);
        pieces(here, there);
        pools(here, there);
        placed(here, there);
        protocols(here, there);
        here.close();
        there.close();

        hamlyn::manager owner(hamlyn::options().name("owner").strategy(HAMLYN_NP));
        hamlyn::area area(owner, 65536, HAMLYN_AREA_SPARSE);
        hamlyn::slot_options options{};
        options.rights = ALL_RIGHTS;
        hamlyn::slot slot(owner, area, options);
        region_ends(slot);
        hamlyn::region region(slot, 0, 65536);
        std::thread([all = slot.fast_ticket(0, 65536), travels = region.ticket()] {
            hamlyn::manager user("user");
            operations(user, all, travels);
        }).join();
        region.revoke();
        managers();
    } catch (const hamlyn::error &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    std::puts("passed");
    return 0;
}
