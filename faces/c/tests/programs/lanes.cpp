// Lanes through the classes of hamlyn.hpp: two managers of one program.
#include "checks.hpp"

#include <iostream>

using namespace std::chrono_literals;

namespace {

void lanes(hamlyn::manager &here, hamlyn::manager &there) {
    hamlyn::lane_options options{};
    options.buffers = 2;
    options.buffer_bytes = 64;
    hamlyn::lane lane(here, options);
    hamlyn::lane_sender sender(there, lane.seed(), 60s);
    IS(sender.info().buffers == 2 && sender.info().buffer_bytes == 64 && sender.info().credits == 2);
    IS(!lane.recv(hamlyn::wait::poll()));
    IS(sender.send(7, "first") == 0);
    sender.send_to(1, 8, "second");
    IS(sender.try_send(9, "third", hamlyn::wait::poll()).code() == HAMLYN_TIMED_OUT);
    {
        auto first = lane.recv(60s);
        auto second = lane.recv(60s);
        IS(first && first->text() == "first" && first->tag() == 7 && first->buffer() == 0);
        IS(second && second->text() == "second" && second->tag() == 8);
        IS(here.link_peer(second->link()).process != 0);
        // It is moved, and given back once.
        hamlyn::lane::message moved = std::move(*first);
        IS(moved.text() == "first");
        first.reset();
        IS(sender.info().credits == 0);
    }
    here.poll();
    there.poll();
    IS(sender.info().credits == 2 && sender.is_free(1));
    throws(HAMLYN_INVALID, [&] { sender.is_free(2); });
    sender.send_kept(10, "kept");
    lane.close();
    here.poll();
    there.poll();
    throws(HAMLYN_FINISHED, [&] { sender.send(11, "late", hamlyn::wait::poll()); });
    const auto kept = sender.next_kept();
    IS(kept && kept->data == "kept" && kept->tag == 10 && !sender.next_kept());
    throws(HAMLYN_BAD_HANDLE, [&] { lane.seed(); });
}

void shared_lanes(hamlyn::manager &here, hamlyn::manager &there) {
    hamlyn::shared_lane_options options{};
    options.buffers = 1;
    hamlyn::shared_lane lane(here, options);
    hamlyn::terminus terminus(there);
    hamlyn::target target(terminus, lane.ticket(), 60s);
    hamlyn::outgoing_message message{};
    message.data = "one";
    message.length_bytes = 3;
    message.word = 4095;
    target.send(message);
    target.send(message);
    IS(hamlyn::await_any(here, {source_of(lane)}, 60s) == 0u);
    auto came = lane.recv(60s);
    IS(came && came->text() == "one" && came->tag() == 4095);
    IS(!lane.recv(60s) && lane.info().taken == 1);
    came->give_back();
    IS(lane.recv(60s)->text() == "one");
    IS(lane.info().taken == 0 && lane.refusals(HAMLYN_REFUSED_QUEUE_FULL) == 0);
}

} // namespace

int main() {
    try {
        hamlyn::manager here("lanes-here"), there("lanes-there");
        lanes(here, there);
        shared_lanes(here, there);
    } catch (const hamlyn::error &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    std::puts("passed");
    return 0;
}
