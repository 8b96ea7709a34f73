"""Nothing that is made for a message outlives it: objects, memory, descriptors."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from typing import Callable

import pytest

import hamlyn

WAIT = 60


def rss_kilobytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def check(act: Callable[[], None], rounds: int, kilobytes: int) -> None:
    """After a while, as much memory and as many objects as before. A leak of one small object in each round would show."""
    for _ in range(rounds // 4):
        act()
    gc.collect()
    objects, memory = len(gc.get_objects()), rss_kilobytes()
    references = sys.gettotalrefcount() if hasattr(sys, "gettotalrefcount") else 0
    for _ in range(rounds):
        act()
    gc.collect()
    assert abs(len(gc.get_objects()) - objects) < 100
    assert rss_kilobytes() - memory < kilobytes
    if references:
        assert abs(sys.gettotalrefcount() - references) < 100


@pytest.fixture
def pair():
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        yield alice, me


def test_messages(pair) -> None:
    alice, me = pair
    inbox = alice.bind_datagram("inbox")
    outbox = me.connect_datagram("alice/inbox", WAIT)
    log = alice.bind_stream("log")
    sender = me.connect_stream("alice/log", WAIT)
    payload, buffer = bytes(500), bytearray(500)

    def act() -> None:
        outbox.send(payload)
        datagram = inbox.recv(WAIT)
        with memoryview(datagram) as view:
            assert view.nbytes == 500
        assert datagram.sender.process == os.getpid()
        outbox.send(buffer)
        inbox.recv_into(buffer, WAIT)
        assert inbox.recv(0) is None
        sender.send(payload)
        view = memoryview(log.recv(WAIT))
        sender.send(payload)
        assert log.recv_bytes(WAIT) == view
        with pytest.raises(TypeError):
            outbox.send("text")

    # 56 bytes a round would be more than a megabyte.
    check(act, 20_000, 1000)


def test_mail(pair) -> None:
    alice, me = pair
    box = alice.bind_mailbox("box")
    outbox = me.connect_mailbox("alice/box", WAIT)
    # Longer ones would touch ever more of the link's memory, up to 16 MiB.
    payload, buffer = bytes(1000), bytearray(1000)

    def act() -> None:
        outbox.send(payload)
        with memoryview(box.recv(WAIT)) as view:
            assert view.nbytes == 1000
        outbox.send(buffer)
        box.recv_into(buffer, WAIT)
        outbox.send(b"short")
        alice.poll()
        assert box.info.waiting <= 1 and box.refusals == {}
        assert box.recv_bytes(WAIT) == b"short"
        assert box.recv(0) is None
        with pytest.raises(hamlyn.TooLong):
            outbox.send(bytes(65537))
        alice.open_mailbox(queue_bytes=64)

    check(act, 10_000, 1000)


def test_calls(pair) -> None:
    alice, me = pair
    service = alice.bind_service("echo")
    client = me.connect_service("alice/echo", WAIT)

    def act() -> None:
        pending = client.start(b"request", WAIT)
        other = client.start(b"other", WAIT)
        call, second = service.recv(WAIT), service.recv(WAIT)
        second.reply(call)
        call.reply(b"x" * 100)
        assert len(client.reply(pending, WAIT)) == 100
        assert bytes(client.reply(other, WAIT)) == b"request"
        client.start(b"given up", WAIT).cancel()
        call = service.recv(0)
        assert call is None or bytes(call) == b"given up"

    check(act, 10_000, 1000)


def test_loans(pair) -> None:
    alice, me = pair
    frames = alice.bind_publisher("frames", message_bytes=1000)
    trusting = me.connect_subscriber("alice/frames", WAIT, trust_publisher=True)
    reader = me.connect_subscriber("alice/frames", WAIT)
    assert trusting.recv(0) is None and reader.recv(0) is None
    frames.await_readers(2, WAIT)

    def act() -> None:
        with frames.loan(1000, WAIT) as loan:
            memoryview(loan)[:5] = b"hello"
        frames.loan(10, WAIT)
        for end in (trusting, reader):
            view = memoryview(end.recv(WAIT))
            assert view[:5] == b"hello"

    check(act, 10_000, 1000)


def test_windows_and_regions(pair) -> None:
    alice, me = pair
    area = alice.interface.allocate(4096, "sparse")
    slot = alice.interface.open_slot(area, rights="all")
    pages = alice.interface.open_slot(alice.interface.allocate(4096, "shared"))
    me.interface.target(slot.ticket(), WAIT)
    peer = alice.next_event(WAIT).peer
    descriptors = []

    def act() -> None:
        with alice.interface.share(slot) as region:
            attached = me.interface.attach(region.ticket, WAIT)
            window = attached.window(trust_peers=True)
            with memoryview(window) as view:
                view[:5] = b"hello"
            assert bytes(window)[:5] == b"hello" == area.window().read(0, 5)
        with pytest.raises(hamlyn.PeerGone):
            window.read(0, 5)
        attached.close()
        with alice.interface.share(pages, peer) as region, me.interface.attach(region.ticket, WAIT) as attached:
            assert attached.lasts
        descriptors.append(len(os.listdir("/proc/self/fd")))

    check(act, 1000, 1000)
    assert descriptors[-1] <= descriptors[10] + 2


def test_the_lower_layer() -> None:
    with hamlyn.open("alice", strategy="np") as alice, hamlyn.open() as me:
        slot = alice.interface.open_slot(alice.interface.allocate(4096), rights="all")
        memory = me.interface.open_initiator(me.interface.target(slot.ticket(), WAIT))
        queue = alice.interface.open_queue(64)
        rows = alice.interface.open_slot(alice.interface.allocate(4096), queue=queue)
        target = me.interface.target(rows.ticket(), WAIT)
        _, pieces = alice.interface.allocate_handover(4, 1024)
        pool = hamlyn.Pool(1024, 4)
        counter = hamlyn.CompletionCounter()
        puts = 0

        def act() -> None:
            nonlocal puts
            reads = [memory.begin_read(0, 500, WAIT) for _ in range(4)]
            assert reads[0].finish(WAIT) == bytes(500)
            # One is left, one counted, one told of by all, one left after that.
            del reads[1]
            memory.finish_all(WAIT)
            assert reads[1].finish(0) == bytes(500)
            memory.begin_put(1000, b"x", WAIT).count(counter)
            puts += 1
            me.interface.await_completions(counter, puts, WAIT)
            with pytest.raises(hamlyn.TooLong):
                memory.begin_read(5000, 1)
            sent = me.interface.send_many(target, [b"one", hamlyn.OutgoingMessage(bytearray(b"two"), word=2)], timeout=WAIT)
            assert me.interface.drain(sent.last, WAIT) == "sent"
            came = 0
            while came < 2:
                came += len(alice.interface.receive_many(queue, 8, WAIT))
            with pytest.raises(TypeError):
                me.interface.send_many(target, [b"good", "bad"])
            view = pieces.view(0, 4096)
            with memoryview(view) as shown:
                assert shown.nbytes == 4096
            chunk = pool.take(1000)
            with memoryview(chunk) as shown:
                shown[0] = 1
            pool.give_back(chunk)
            assert alice.interface.slot_info(slot).rights == "all"

        check(act, 5000, 1500)


def test_kept_replies(pair) -> None:
    alice, me = pair
    service = alice.bind_service("echo")
    client = me.connect_service("alice/echo", WAIT)

    def act() -> None:
        views = []
        for number in range(4):
            pending = client.start(b"request", WAIT)
            call = service.recv(WAIT)
            call.reply(call)
            reply = client.reply(pending, WAIT)
            if number % 2:
                reply.keep()
                views.append(reply)
            else:
                views.append(memoryview(reply))
        assert all(view == b"request" for view in views)

    check(act, 5000, 1000)


def test_handles_of_a_shared_manager() -> None:
    with hamlyn.open("alice", shared=True) as alice:

        def act() -> None:
            with alice.share() as handle:
                inbox = handle.bind_datagram("inbox")
                handle.connect_datagram("alice/inbox", WAIT).send(b"x", WAIT)
                assert inbox.recv_bytes(WAIT) == b"x"

        check(act, 2000, 2000)


def test_managers_and_end_points() -> None:
    descriptors = []

    def act() -> None:
        with hamlyn.open("alice") as alice, hamlyn.open() as me:
            inbox = alice.bind_datagram("inbox")
            log = alice.bind_stream("log", pieces=2, piece_bytes=64)
            me.connect_datagram("alice/inbox", WAIT).send(b"x")
            sender = me.connect_stream("alice/log", WAIT)
            sender.send(b"x")
            assert bytes(inbox.recv(WAIT)) == b"x" and bytes(log.recv(WAIT)) == b"x"
            area = me.interface.allocate(100)
            me.interface.open_slot(area)
            me.prepare_sleep(0.0001)
        descriptors.append(len(os.listdir("/proc/self/fd")))

    check(act, 80, 20_000)
    assert descriptors[-1] <= descriptors[10] + 2


def test_connecting(pair) -> None:
    alice, me = pair
    inbox = alice.bind_datagram("inbox")

    async def main() -> None:
        sender = await me.connect_datagram_async("alice/inbox", WAIT)
        sender.close()
        sender = await me.connect_datagram_async(inbox.ticket)
        with pytest.raises(hamlyn.NotFound):
            await me.connect_stream_async("nobody/log", 0)
        given_up = asyncio.ensure_future(me.connect_service_async("nobody/echo"))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up

    loop = asyncio.new_event_loop()
    check(lambda: loop.run_until_complete(main()), 400, 1000)
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
