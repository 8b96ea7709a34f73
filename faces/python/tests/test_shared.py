"""Managers that several threads use at a time, each by a handle of its own: a thread that waits keeps no other from the manager."""

from __future__ import annotations

import asyncio
import threading
from typing import Callable

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

    threads = [threading.Thread(target=caught, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


@pytest.mark.parametrize("strategy", ["proc", "np", "inject", "receive"])
def test_a_thread_that_waits_keeps_nobody_from_the_manager(strategy: str) -> None:
    with hamlyn.open("alice", strategy=strategy, shared=True) as alice, alice.share() as other:
        assert alice.shared and other.shared and other.name == "alice"
        inbox = alice.bind_datagram("inbox")
        waits = threading.Event()
        came = []

        def receive() -> None:
            waits.set()
            # Without end, until the other thread has done all that.
            came.append(inbox.recv_bytes())

        def use() -> None:
            waits.wait()
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
                done.wait()

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
        thread = threading.Thread(target=inbox.recv)
        thread.start()
        while True:
            try:
                alice.poll()
            except hamlyn.InUse as error:
                assert "Manager.share" in str(error)
                break
        with hamlyn.open() as me:
            me.connect_datagram("alice/inbox", WAIT).send(b"end", WAIT)
            me.flush(WAIT)
            thread.join()


def test_what_cannot_be_shared() -> None:
    with hamlyn.open() as me:
        assert not me.shared
        with pytest.raises(hamlyn.Invalid, match="shared=True"):
            me.share()
    with hamlyn.open(shared=True) as me, me.share() as other:
        for handle in (me, other):
            with pytest.raises(hamlyn.Invalid, match="open another manager"):
                handle.interface


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
            bound.wait()
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
                asked.wait()

        def ask() -> None:
            async def main() -> None:
                echo = alice.connect_service("alice/echo", WAIT)
                for number in range(100):
                    assert await echo.call_async(b"%d" % number) == b"%d" % number

            bound.wait()
            asyncio.run(main())
            asked.set()

        bound, asked = threading.Event(), threading.Event()
        run(serve, ask)
