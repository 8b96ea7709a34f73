"""Managers that several threads use at a time, each by a handle of its own: a thread that waits keeps no other from the manager."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, Callable, Iterator

import pytest

import hamlyn

WAIT = 60


def run(*targets: Callable[[], None]) -> None:
    """Runs each in a thread; what one raises is raised."""
    raised: list[BaseException] = []

    def caught(target: Callable[[], None]) -> None:
        try:
            target()
        except BaseException as error:
            raised.append(error)

    # What hangs is told, and does not keep the tests from ending.
    threads = [
        threading.Thread(target=caught, args=(target,), daemon=True) for target in targets
    ]
    for thread in threads:
        thread.start()
    for _ in turns("the threads to end"):
        if raised:
            raise raised[0]
        if not any(thread.is_alive() for thread in threads):
            return


def turns(what: str) -> Iterator[None]:
    """So that a loop that waits for something ends."""
    end = time.monotonic() + 2 * WAIT
    while time.monotonic() < end:
        yield
        time.sleep(0.001)
    pytest.fail(f"waited too long for {what}")


def until_used(manager: hamlyn.Manager) -> None:
    """Until another thread's call uses it."""
    for _ in turns("the other thread's call"):
        try:
            manager.poll()
        except hamlyn.InUse:
            return


def unless_in_use(act: Callable[[], None]) -> None:
    """Does it while no other thread uses the manager."""
    for _ in turns("the other thread to leave the manager"):
        try:
            return act()
        except hamlyn.InUse:
            pass


def unless_in_use_found(act: Callable[[], object]) -> Any:
    """What it returns, when no other thread uses the handle."""
    found: list[object] = []
    unless_in_use(lambda: found.append(act()))
    return found[0]


def await_event(event: threading.Event) -> None:
    assert event.wait(WAIT)


@pytest.mark.parametrize("strategy", ["proc", "np", "inject", "receive"])
def test_a_thread_that_waits_keeps_nobody_from_the_manager(strategy: str) -> None:
    with hamlyn.open("alice", strategy=strategy, shared=True) as alice, alice.share() as other:
        assert alice.shared and other.shared and other.name == "alice"
        inbox = alice.bind_datagram("inbox")
        waits = threading.Event()
        came = []

        def receive() -> None:
            waits.set()
            # Until the other thread has done all that.
            came.append(inbox.recv_bytes(WAIT))

        def use() -> None:
            await_event(waits)
            log = other.bind_stream("log")
            sender = other.connect_stream("alice/log", WAIT)
            for number in range(1000):
                sender.send(b"%d" % number, WAIT)
                assert log.recv_bytes(WAIT) == b"%d" % number
            outbox = other.connect_datagram("alice/inbox", WAIT)
            outbox.send(b"end", WAIT)
            other.fence(WAIT)

        run(receive, use)
        assert came == [b"end"]


def test_many_clients_of_one_manager() -> None:
    rounds, threads = 300, 4
    with hamlyn.open("server", shared=True) as server, hamlyn.open(shared=True) as me:

        def serve() -> None:
            with server.share() as handle:
                service = handle.bind_service("echo")
                for _ in range(rounds * threads):
                    call = service.recv(WAIT)
                    call.reply(call)
                handle.flush(WAIT)
                await_event(done)

        def ask(number: int) -> None:
            with me.share() as handle:
                echo = handle.connect_service("server/echo", WAIT)
                for turn in range(rounds):
                    text = b"%d %d" % (number, turn)
                    assert echo.call_bytes(text, WAIT) == text
            finished.append(number)
            if len(finished) == threads:
                done.set()

        done = threading.Event()
        finished: list[int] = []
        run(serve, *(lambda number=number: ask(number) for number in range(threads)))


def test_handles_and_their_end_points() -> None:
    with hamlyn.open("alice", shared=True) as alice:
        other = alice.share()
        inbox = other.bind_datagram("inbox")
        kept = alice.bind_datagram("kept")
        assert inbox.manager is other
        other.close()
        with pytest.raises(hamlyn.HandleClosed):
            inbox.recv(0)
        with pytest.raises(hamlyn.HandleClosed):
            other.poll()
        with pytest.raises(hamlyn.HandleClosed):
            other.share()
        # The manager ends with its last handle.
        alice.connect_datagram("alice/kept", WAIT).send(b"still", WAIT)
        assert kept.recv_bytes(WAIT) == b"still"
    with pytest.raises(hamlyn.NotFound), hamlyn.open() as me:
        me.connect_datagram("alice/kept", 0.01)


def test_a_handle_is_for_one_thread_at_a_time() -> None:
    with hamlyn.open("alice", shared=True) as alice:
        inbox = alice.bind_datagram("inbox")
        came = []

        def receive() -> None:
            # Calls of the other thread may keep this one from beginning.
            unless_in_use(lambda: came.append(inbox.recv_bytes(WAIT)))

        def look() -> None:
            until_used(alice)
            with pytest.raises(hamlyn.InUse, match="Manager.share"):
                for _ in turns("a call that meets the other's"):
                    alice.poll()
            with hamlyn.open() as me:
                me.connect_datagram("alice/inbox", WAIT).send(b"end", WAIT)
                me.flush(WAIT)

        run(receive, look)
        assert came == [b"end"]


def test_a_thread_that_asks_keeps_nobody_from_the_manager() -> None:
    with hamlyn.open("alice", shared=True) as alice:
        other, third = alice.share(), alice.share()
        inbox = other.bind_datagram("inbox")
        answers = []
        received = threading.Event()

        over = threading.Event()

        def ask() -> None:
            with pytest.raises((hamlyn.TimedOut, hamlyn.NotFound)):
                unless_in_use(lambda: alice.ask("alice", "nothing", 3))
            over.set()
            unless_in_use(lambda: answers.append(alice.ask("alice", "ticket", WAIT)))

        def receive() -> None:
            until_used(alice)
            # The question waits in slices of a second. Calls that waited for the end of each would be as many as slices.
            calls = 0
            while not over.is_set():
                assert inbox.recv(0) is None
                calls += 1
            assert calls > 20
            received.set()

        def offer() -> None:
            await_event(received)
            with hamlyn.open(shared=True) as me:
                me.connect_datagram("alice/inbox", WAIT).send(b"hello", WAIT)
                me.flush(WAIT)
            assert inbox.recv_bytes(WAIT) == b"hello"
            assert not answers
            third.offer("ticket", b"for the one that asks")

        run(ask, receive, offer)
        assert answers == [b"for the one that asks"]


def test_what_is_connected_while_its_manager_is_closed_is_closed_with_it() -> None:
    with hamlyn.open("alice") as alice:
        for _ in turns("a connection that is made while its manager is closed"):
            made: list[hamlyn.StreamSender] = []
            me = hamlyn.open(shared=True)
            item = f"log{time.monotonic_ns()}"

            def connect() -> None:
                try:
                    unless_in_use(lambda: made.append(me.connect_stream(f"alice/{item}", WAIT)))
                except hamlyn.HandleClosed:
                    # The call looked for signals just then, and came back to a closed manager.
                    pass

            logs: list[hamlyn.StreamReceiver] = []

            def close() -> None:
                until_used(me)
                me.close()
                logs.append(alice.bind_stream(item))

            run(connect, close)
            if not made:
                continue
            assert made[0].closed
            with pytest.raises(hamlyn.HandleClosed):
                made[0].send(b"too late", 0)
            # Its sender is gone with its manager.
            with pytest.raises(hamlyn.Error) as error:
                logs[0].recv(WAIT)
            assert isinstance(error.value, (hamlyn.Closed, hamlyn.PeerGone))
            break


@pytest.mark.parametrize("drops", [False, True])
def test_a_sleep_is_ended_while_another_thread_uses_the_manager(drops: bool) -> None:
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        inbox = alice.bind_datagram("inbox")
        outbox = me.connect_datagram("alice/inbox", WAIT)
        sleep = None
        for _ in turns("a time at which nothing happens"):
            sleep = alice.prepare_sleep(WAIT)
            if sleep is not None:
                break
        came = []

        def receive() -> None:
            unless_in_use(lambda: came.append(inbox.recv_bytes(WAIT)))

        def end() -> None:
            nonlocal sleep
            until_used(alice)
            if not drops:
                sleep.end()
            sleep = None
            outbox.send(b"end", WAIT)
            me.flush(WAIT)

        run(receive, end)
        assert came == [b"end"]
        outbox.send(b"next", WAIT)
        me.flush(WAIT)
        assert inbox.recv_bytes(WAIT) == b"next"


def test_a_sleep_ends_with_its_manager() -> None:
    with hamlyn.open("alice") as alice:
        for _ in turns("a time at which nothing happens"):
            sleep = alice.prepare_sleep(WAIT)
            if sleep is not None:
                break
    sleep.end()
    with sleep:
        pass


def test_what_cannot_be_shared() -> None:
    with hamlyn.open() as me:
        assert not me.shared
        with pytest.raises(hamlyn.Invalid, match="shared=True"):
            me.share()
    with hamlyn.open(shared=True) as me, me.share() as other:
        # What one handle opens is not for another.
        area, queue = me.interface.allocate(64), me.interface.open_queue(8)
        for wrong in (lambda: other.interface.open_slot(area), lambda: other.interface.rcv(queue, 0)):
            with pytest.raises(hamlyn.Invalid, match="another manager's"):
                wrong()


@pytest.mark.parametrize("strategy", ["proc", "np", "inject", "receive"])
def test_the_lower_layer_of_a_shared_manager(strategy: str) -> None:
    rounds = 200
    with hamlyn.open("alice", strategy=strategy, shared=True) as alice:
        first, second = alice.share(), alice.share()

        def own() -> None:
            with first:
                interface = first.interface
                area, queue = interface.allocate(4096), interface.open_queue(rounds)
                slot = interface.open_slot(area, queue=queue, rights="all")
                tickets.append(slot.ticket())
                there.set()
                # It waits here while the other threads' calls are made, some of which are answered by this one manager.
                words = [interface.rcv(queue, WAIT).word for _ in range(rounds)]
                assert words == list(range(rounds))
                await_event(done)
                assert area.load_u64(0) == sum(range(rounds))
                assert area.read(8, 4) == b"%04d" % (rounds - 1)

        def send() -> None:
            await_event(there)
            interface = alice.interface
            target = interface.target(tickets[0], WAIT)
            for number in range(rounds):
                interface.send_msg(target, b"%04d" % number, 8, word=number, timeout=WAIT)

        def operate() -> None:
            await_event(there)
            with second:
                memory = second.interface.open_initiator(second.interface.target(tickets[0], WAIT))
                for number in range(rounds):
                    memory.change(0, "add", number, WAIT)
                assert memory.begin_read_word(0, WAIT).finish(WAIT) == sum(range(rounds))
            done.set()

        tickets: list[hamlyn.Ticket] = []
        there, done = threading.Event(), threading.Event()
        run(own, send, operate)


def test_waits_of_the_lower_layer_keep_nobody_from_the_manager() -> None:
    with hamlyn.open("alice", shared=True) as alice, hamlyn.open("bob") as bob:
        memory_of_bob = bob.interface.allocate(64)
        slot = bob.interface.open_slot(memory_of_bob, rights="all")
        handles = [alice.share() for _ in range(3)]
        queue = handles[0].interface.open_queue(8)
        own = handles[0].interface.open_slot(handles[0].interface.allocate(64), queue=queue)
        ticket = own.ticket()
        memory = handles[1].interface.open_initiator(handles[1].interface.target(slot.ticket(), WAIT))
        counter = hamlyn.CompletionCounter()
        memory.begin_put(0, b"x", WAIT).count(counter)
        over = threading.Event()

        def receive() -> None:
            assert unless_in_use_found(lambda: handles[0].interface.rcv(queue, WAIT)).word == 7

        def operate() -> None:
            # Bob answers when the last thread has made all its calls.
            assert unless_in_use_found(lambda: memory.read(0, 1, WAIT)) == b"x"

        def count() -> None:
            unless_in_use(lambda: handles[2].interface.await_completions(counter, 1, WAIT))

        def use() -> None:
            for handle in handles:
                until_used(handle)
            inbox = alice.bind_datagram("inbox")
            for _ in range(2000):
                assert inbox.recv(0) is None
                alice.interface.allocate(64)
            target = alice.interface.target(ticket, WAIT)
            alice.interface.send_msg(target, b"x", word=7, timeout=WAIT)
            over.set()

        def answer() -> None:
            await_event(over)
            for _ in turns("the operations"):
                bob.poll()
                if counter.ended and not memory_waits():
                    return

        def memory_waits() -> bool:
            try:
                return memory.outstanding > 0
            except hamlyn.InUse:
                return True

        run(receive, operate, count, use, answer)
        for handle in handles:
            handle.close()


def test_a_long_message_of_a_shared_manager() -> None:
    with hamlyn.open("alice", shared=True) as alice, hamlyn.open("bob") as bob:
        long = bytes(range(256)) * 16384
        queue = bob.interface.open_queue(8)
        area = bob.interface.allocate(len(long))
        slot = bob.interface.open_slot(area, queue=queue, entries=1)
        sending, handle = threading.Event(), alice.share()

        def send() -> None:
            target = alice.interface.target(slot.entry_ticket(0), WAIT)
            sending.set()
            alice.interface.send_msg(target, long, timeout=WAIT)

        def use() -> None:
            await_event(sending)
            inbox = handle.bind_datagram("inbox")
            for _ in range(100):
                assert inbox.recv(0) is None
            # Now there is room.
            assert bob.interface.rcv(queue, WAIT).metadata_index == 0

        run(send, use)
        assert area.read(0, len(long)) == long


def test_views_outlive_their_handle() -> None:
    with hamlyn.open("alice", shared=True) as alice:
        views = []

        def receive() -> None:
            with alice.share() as handle:
                log = handle.bind_stream("log")
                bound.set()
                for _ in range(3):
                    views.append(memoryview(log.recv(WAIT)))

        def send() -> None:
            await_event(bound)
            sender = alice.connect_stream("alice/log", WAIT)
            for number in range(3):
                sender.send(b"record %d" % number, WAIT)
                sender.flush(WAIT)

        bound = threading.Event()
        run(receive, send)
        assert [bytes(view) for view in views] == [b"record 0", b"record 1", b"record 2"]


def test_event_loops_of_two_threads() -> None:
    with hamlyn.open("alice", shared=True) as alice:

        def serve() -> None:
            async def main() -> None:
                service = handle.bind_service("echo")
                bound.set()
                for _ in range(100):
                    call = await service.recv_async()
                    call.reply(call)
                handle.flush(WAIT)

            with alice.share() as handle:
                asyncio.run(main())
                await_event(asked)

        def ask() -> None:
            async def main() -> None:
                echo = alice.connect_service("alice/echo", WAIT)
                for number in range(100):
                    assert await echo.call_async(b"%d" % number) == b"%d" % number

            await_event(bound)
            asyncio.run(main())
            asked.set()

        bound, asked = threading.Event(), threading.Event()
        run(serve, ask)
