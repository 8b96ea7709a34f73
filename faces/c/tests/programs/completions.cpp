// Completion queues through the classes of hamlyn.hpp: two managers of one program.
#include "checks.hpp"

#include <iostream>
#include <map>

using namespace std::chrono_literals;

namespace {

// The peer moves packets until the next completion is there.
hamlyn::completion next(hamlyn::manager &peer, hamlyn::completion_queue &queue) {
    for (;;) {
        if (auto found = queue.recv(hamlyn::wait::poll())) {
            return *found;
        }
        peer.poll();
    }
}

void ends(hamlyn::manager &here, hamlyn::manager &there, hamlyn::target &target, hamlyn::initiator &initiator,
          const hamlyn::area &area) {
    hamlyn::completion_queue queue(here, 3);
    IS(target.has_room() && here.cells_bytes_max(target.link()) >= 512 && here.packet_bytes_max(target.link()) >= 4096);
    hamlyn::outgoing_message message{};
    message.data = "one";
    message.length_bytes = 3;
    queue.track_send(target, target.send(message), 1);
    queue.track_fence(target.link(), 2);
    queue.track_word(initiator, initiator.begin_change(8, {HAMLYN_CHANGE_ADD, 64, 5, 0}), 3);
    throws(HAMLYN_LIMIT, [&] { queue.track_fence(target.link(), 4); });
    std::map<std::uint64_t, std::uint64_t> words;
    for (int i = 0; i < 3; i++) {
        const auto completion = next(there, queue);
        IS(completion && !completion.returned);
        words[completion.context] = completion.word;
    }
    IS((words == std::map<std::uint64_t, std::uint64_t>{{1, 0}, {2, 0}, {3, 100}}));
    IS(area.load(8) == 105 && area.read<char>(0) == 'o');
    queue.track_operation(initiator, initiator.begin_put(100, "put"), 5);
    IS(next(there, queue).context == 5 && area.read<char>(100) == 'p');
    IS(!queue.recv(1ms));
    throws(HAMLYN_INVALID, [&] { queue.track_operation(initiator, 77, 5); });
    throws(HAMLYN_INVALID, [&] { hamlyn::completion_queue none(here, 0); });
    throws(HAMLYN_INVALID, [&] { hamlyn::completion_queue(there, 1).track_word(initiator, 1, 1); });
    throws(HAMLYN_BAD_HANDLE, [&] { hamlyn::completion_queue().recv(); });
}

void several(hamlyn::manager &here, hamlyn::manager &there, hamlyn::target &target) {
    hamlyn::queue messages(here, 4);
    hamlyn::completion_queue queue(here, 1);
    IS(!hamlyn::await_any(here, {source_of(messages), source_of(queue)}, 1ms));
    here.look_within(1ms);
    here.await(60s);
    queue.track_fence(target.link(), 1);
    there.poll();
    there.poll();
    IS(hamlyn::await_any(here, {source_of(messages), source_of(queue)}, 60s) == 1u);
    IS(queue.recv()->context == 1);
}

#if __cplusplus >= 202002L
hamlyn::task<void> awaits(hamlyn::event_loop &loop, hamlyn::completion_queue &queue) {
    const auto completion = co_await loop.recv(queue);
    IS(completion && completion.context == 12);
}
#endif

void on_a_loop([[maybe_unused]] hamlyn::manager &here, [[maybe_unused]] hamlyn::manager &there,
               [[maybe_unused]] hamlyn::target &target) {
#if __cplusplus >= 202002L
    hamlyn::completion_queue queue(here, 1);
    queue.track_fence(target.link(), 12);
    hamlyn::event_loop loop(here);
    loop.add(there);
    loop.spawn(awaits(loop, queue));
    loop.run();
#endif
}

void refusals(hamlyn::manager &here, hamlyn::manager &there, hamlyn::target &target, hamlyn::slot &slot) {
    hamlyn::completion_queue queue(here, 2);
    here.set_link_context(target.link(), 99);
    IS(here.link_context(target.link()) == 99);
    throws(HAMLYN_NOT_FOUND, [&] { here.set_link_context(UINT64_MAX, 1); });
    throws(HAMLYN_NOT_FOUND, [&] { here.packet_bytes_max(UINT64_MAX); });
    queue.track_refusals();
    slot.revoke();
    target.send(5, "one", 7);
    queue.track_fence(target.link(), 1);
    int fences = 0, packets = 0;
    for (int i = 0; i < 2; i++) {
        const auto completion = next(there, queue);
        IS(!completion && completion.failure->code() == HAMLYN_REFUSED);
        IS(std::string_view(completion.failure->what()).find("revoked") != std::string_view::npos);
        if (completion.returned) {
            IS(completion.context == 99 && completion.returned->offset == 5 && completion.returned->word == 7);
            packets++;
        } else {
            IS(completion.context == 1);
            fences++;
        }
    }
    IS(fences == 1 && packets == 1);
}

} // namespace

int main() {
    try {
        hamlyn::manager here("completions-here"), there("completions-there");
        hamlyn::area area(there, 4096);
        area.store(8, 100);
        hamlyn::slot_options options{};
        options.rights = HAMLYN_RIGHT_WRITE | HAMLYN_RIGHT_READ | HAMLYN_RIGHT_ATOMIC;
        hamlyn::slot slot(there, area, options);
        const auto ticket = slot.fast_ticket(0, 4096);
        hamlyn::terminus terminus(here);
        hamlyn::target target(terminus, ticket, 60s);
        hamlyn::initiator initiator(here, ticket, 0, 60s);
        ends(here, there, target, initiator, area);
        several(here, there, target);
        on_a_loop(here, there, target);
        refusals(here, there, target, slot);
    } catch (const hamlyn::error &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    std::puts("passed");
    return 0;
}
