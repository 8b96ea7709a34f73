"""Mailboxes: mail of many senders waits, in the order of each, and beyond the bound it is refused."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import threading
from typing import Any, Callable, Iterator, Optional

import numpy
import pytest
from conftest import doomed, running
from test_fork import in_child, refused
from test_hosts import free_ports, network

import hamlyn

WAIT = 60
ROUNDS = 4
# Around the bounds of a cell, of a message in cells, and of the arena; the longest comes last.
LONGEST = 65536
LENGTHS = (0, 1, 8, 56, 57, 500, 1064, 1065, 4096, LONGEST)


def pattern(seed: int, length: int) -> bytes:
    period = bytes((seed * 31 + at * 7) % 256 for at in range(256))
    return (period * (length // 256 + 1))[:length]


@pytest.fixture
def pair() -> Iterator[tuple[hamlyn.Manager, hamlyn.Manager]]:
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        yield alice, me


def fenced(owner: hamlyn.Manager, outbox: hamlyn.MailboxSender) -> None:
    """Fences while the owner only polls."""
    while True:
        owner.poll()
        with contextlib.suppress(hamlyn.TimedOut):
            return outbox.fence(0.001)


def serve(owner: hamlyn.Manager, *peers: Any) -> None:
    """Answers their fences until they have ended."""
    while any(peer.is_alive() for peer in peers):
        owner.wait(0.001)


def sending(number: int) -> None:
    with hamlyn.open() as me:
        outbox = me.connect_mailbox("alice/box", WAIT)
        assert outbox.message_bytes_max == LONGEST
        for turn in range(ROUNDS):
            for length in LENGTHS:
                outbox.send(pattern(number + turn, length), WAIT)
        outbox.fence(WAIT)


def received(box: hamlyn.MailboxReceiver, how: str, buffer: bytearray) -> tuple[Optional[int], bytes]:
    """The process of a sender, if that is told, and a copy of its mail."""
    if how == "recv":
        mail = box.recv(WAIT)
        assert mail is not None and mail.sender is not None
        with memoryview(mail) as view:
            assert view.readonly and view.nbytes == len(mail)
            return mail.sender.process, view.tobytes()
    if how == "recv_bytes":
        copy = box.recv_bytes(WAIT)
        assert copy is not None
        return None, copy
    length = box.recv_into(buffer, WAIT)
    return None, bytes(buffer[:length])


@pytest.mark.parametrize("strategy", ["proc", "np", "inject", "receive"])
def test_all_lengths_of_two_senders_in_order(strategy: str) -> None:
    with hamlyn.open("alice", strategy=strategy) as alice:
        box = alice.bind_mailbox("box")
        with running(sending, 1) as one, running(sending, 100) as other:
            numbers = {one.pid: 1, other.pid: 100}
            came: dict[int, list[bytes]] = {one.pid: [], other.pid: []}
            for _ in range(2 * ROUNDS * len(LENGTHS)):
                process, mail = received(box, "recv", bytearray())
                came[process].append(mail)
            serve(alice, one, other)
        for process, mails in came.items():
            assert mails == [pattern(numbers[process] + turn, length) for turn in range(ROUNDS) for length in LENGTHS]
        assert box.recv(0) is None and box.refusals == {}


@pytest.mark.parametrize("how", ["recv_bytes", "recv_into"])
def test_copies(how: str) -> None:
    with hamlyn.open("alice") as alice:
        box, buffer = alice.bind_mailbox("box"), bytearray(LONGEST)
        with running(sending, 1) as peer:
            for turn in range(ROUNDS):
                for length in LENGTHS:
                    assert received(box, how, buffer)[1] == pattern(1 + turn, length)
            serve(alice, peer)


def test_iteration(pair: Any) -> None:
    alice, me = pair
    with alice.bind_mailbox("box") as box, me.connect_mailbox("alice/box", WAIT) as outbox:
        for number in range(5):
            outbox.send(b"%d" % number)
        came = []
        for mail in box:
            came.append(bytes(mail))
            if len(came) == 5:
                break
        assert came == [b"0", b"1", b"2", b"3", b"4"]
    for closed in (lambda: box.recv(0), lambda: box.info, lambda: box.ticket, lambda: outbox.send(b""), lambda: outbox.fence(0)):
        with pytest.raises(hamlyn.HandleClosed):
            closed()
    assert box.closed and outbox.closed and box.manager is alice
    box.close()


def test_an_owner_that_polls_keeps_mail_and_refuses_beyond_its_bound(pair: Any) -> None:
    alice, me = pair
    box = alice.bind_mailbox("box", queue_bytes=64 * 64, peer_bytes=32 * 64)
    outbox = me.connect_mailbox("alice/box", WAIT)
    for number in range(40):
        outbox.send(b"%d" % number, WAIT)
    with pytest.raises(hamlyn.Refused, match="8 of the packets.*queue is full"):
        fenced(alice, outbox)
    # It is told once.
    fenced(alice, outbox)
    info = box.info
    assert (info.queue_bytes, info.waiting, info.waiting_bytes, info.queued) == (4096, 32, 2048, 32)
    assert list(info.refusals.values()) == [8] and info.refusals == box.refusals == alice.refusals
    assert "32 wait, in 2048 of 4096 bytes" in repr(info)
    # What waits of one peer leaves the others room, and so does what is taken.
    with hamlyn.open() as other:
        another = other.connect_mailbox("alice/box", WAIT)
        another.send(b"of another", WAIT)
        fenced(alice, another)
        assert box.info.waiting == 33
        assert [box.recv_bytes(WAIT) for _ in range(33)] == [b"%d" % number for number in range(32)] + [b"of another"]
    assert box.recv_bytes(0) is None and box.info.waiting_bytes == 0
    outbox.send(bytes(2048), WAIT)
    fenced(alice, outbox)
    assert box.info.queued == 34
    # Received in turn, longer ones need no queue.
    assert box.recv_bytes(WAIT) == bytes(2048)
    outbox.send(bytes(LONGEST), WAIT)
    assert box.recv_bytes(WAIT) == bytes(LONGEST)


def test_a_link_without_room() -> None:
    with hamlyn.open("alice", buffer_bytes_per_peer=0) as alice, hamlyn.open() as me:
        box = alice.bind_mailbox("box", queue_bytes=1 << 26)
        outbox = me.connect_mailbox("alice/box", WAIT)
        sent = 0
        with pytest.raises(hamlyn.TimedOut, match="nothing was sent"):
            while True:
                outbox.send(b"%d" % sent, 0)
                sent += 1
        with pytest.raises(hamlyn.TimedOut):
            outbox.fence(0.01)

        async def main() -> None:
            late = asyncio.ensure_future(outbox.send_async(b"%d" % sent))
            await asyncio.sleep(0.01)
            assert not late.done()
            for number in range(sent + 1):
                assert bytes(await box.recv_async()) == b"%d" % number
            await late

        asyncio.run(main())


def test_views(pair: Any) -> None:
    alice, me = pair
    box = alice.bind_mailbox("box")
    outbox = me.connect_mailbox(box.ticket, WAIT)
    outbox.send(numpy.arange(1000, dtype="i4"), WAIT)
    outbox.send(b"second", WAIT)
    mail = box.recv(WAIT)
    array = numpy.frombuffer(mail, "i4")
    for act in (mail.release, lambda: box.recv(0), lambda: box.recv_bytes(0), box.revoke):
        with pytest.raises(BufferError, match="view of the mail is alive"):
            act()
    # These need nothing of the mail.
    assert box.info.waiting == 0 and box.refusals == {} and len(box.ticket) == LONGEST
    assert mail.sender.process == os.getpid() and not mail.released
    assert array.sum() == 499_500
    del array
    short = bytearray(3)
    with pytest.raises(hamlyn.TooLong, match="6 bytes came"):
        box.recv_into(short, WAIT)
    assert mail.released
    for use in (lambda: bytes(mail), lambda: memoryview(mail), lambda: mail.sender):
        with pytest.raises(hamlyn.Released):
            use()
    with box.recv(WAIT) as second:
        assert second == b"second"
        assert second.read_into(short, 3) == 3 and short == b"ond"
    assert second.released
    outbox.send(b"third", WAIT)
    view = memoryview(box.recv(WAIT))
    box.close()
    alice.close()
    assert view == b"third"


def by_ticket(ticket: bytes) -> None:
    with hamlyn.open() as me:
        outbox = me.connect_mailbox(hamlyn.Ticket(ticket), WAIT)
        outbox.send(b"by ticket", WAIT)
        outbox.fence(WAIT)


def test_tickets_and_revocation(pair: Any) -> None:
    alice, me = pair
    box, named = alice.open_mailbox(queue_bytes=4096), alice.bind_mailbox("box")
    with running(by_ticket, bytes(box.ticket)) as peer:
        mail = box.recv(WAIT)
        assert mail == b"by ticket" and mail.sender.process == peer.pid
        serve(alice, peer)
    for end, to in ((box, box.ticket), (named, "alice/box")):
        outbox = me.connect_mailbox(to, WAIT)
        before = end.ticket
        outbox.send(b"waits", WAIT)
        fenced(alice, outbox)
        end.revoke()
        assert end.ticket != before
        outbox.send(b"late", WAIT)
        with pytest.raises(hamlyn.Refused, match="wrong key"):
            fenced(alice, outbox)
        assert end.refusals == {"wrong key": 1}
        assert end.recv_bytes(WAIT) == b"waits" and end.recv(0) is None
        with me.connect_mailbox(to if end is named else end.ticket, WAIT) as again:
            again.send(b"again", WAIT)
            assert end.recv_bytes(WAIT) == b"again"
    outbox = me.connect_mailbox(box.ticket, WAIT)
    box.close()
    outbox.send(b"to nobody", WAIT)
    with pytest.raises(hamlyn.Refused, match="closed"):
        fenced(alice, outbox)


def test_tasks(pair: Any) -> None:
    alice, me = pair

    async def main() -> None:
        late = asyncio.ensure_future(me.connect_mailbox_async("alice/box", WAIT))
        await asyncio.sleep(0.01)
        assert not late.done()
        box = alice.bind_mailbox("box", queue_bytes=4096, peer_bytes=64)
        outbox, other = await late, await me.connect_mailbox_async(box.ticket)
        waiting = asyncio.ensure_future(box.recv_async())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        await outbox.send_async(b"first")
        assert bytes(await waiting) == b"first"
        waiting = asyncio.ensure_future(box.recv_async())
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        async def send() -> None:
            for number in range(100):
                await (outbox, other)[number % 2].send_async(b"%d" % number)

        async def receive() -> None:
            number = 0
            async for mail in box:
                assert mail == b"%d" % number
                number += 1
                if number == 100:
                    return

        await asyncio.gather(send(), receive())
        fence = asyncio.ensure_future(outbox.fence_async())
        while not fence.done():
            alice.poll()
            await asyncio.sleep(0)
        await fence
        for _ in range(2):
            await outbox.send_async(b"x")
        fence = asyncio.ensure_future(outbox.fence_async())
        while not fence.done():
            alice.poll()
            await asyncio.sleep(0)
        with pytest.raises(hamlyn.Refused, match="queue is full"):
            await fence
        assert box.info.waiting == 1

    asyncio.run(main())


# Every public method and property of the ends of a mailbox, and of its mail.
USES: dict[str, Callable[[Any], object]] = {
    "MailboxReceiver.recv": lambda box: box.recv(0),
    "MailboxReceiver.recv_bytes": lambda box: box.recv_bytes(0),
    "MailboxReceiver.recv_into": lambda box: box.recv_into(bytearray(8), 0),
    "MailboxReceiver.recv_async": lambda box: asyncio.run(awaited(box.recv_async)),
    "MailboxReceiver.__next__": next,
    "MailboxReceiver.__anext__": lambda box: asyncio.run(awaited(box.__anext__)),
    "MailboxReceiver.ticket": lambda box: box.ticket,
    "MailboxReceiver.revoke": lambda box: box.revoke(),
    "MailboxReceiver.info": lambda box: box.info,
    "MailboxReceiver.refusals": lambda box: box.refusals,
    "MailboxSender.send": lambda outbox: outbox.send(b"child", 0),
    "MailboxSender.send_async": lambda outbox: asyncio.run(awaited(lambda: outbox.send_async(b"child"))),
    "MailboxSender.message_bytes_max": lambda outbox: outbox.message_bytes_max,
    "MailboxSender.fence": lambda outbox: outbox.fence(0),
    "MailboxSender.fence_async": lambda outbox: asyncio.run(awaited(outbox.fence_async)),
    "Mail.sender": lambda mail: mail.sender,
}
# These give the receiver itself.
PLAIN = {"__iter__", "__aiter__"}


async def awaited(begin: Callable[[], Any]) -> object:
    return await asyncio.wait_for(begin(), WAIT)


def test_the_list_has_all_methods() -> None:
    public = {
        f"{kind.__name__}.{name}"
        for kind in (hamlyn.MailboxReceiver, hamlyn.MailboxSender, hamlyn.Mail)
        for name in vars(kind)
        if (not name.startswith("_") or name in ("__next__", "__anext__")) and name not in PLAIN
    }
    assert public == USES.keys()


@pytest.mark.parametrize("strategy", ["proc", "np", "inject", "receive"])
def test_a_forked_child_is_refused(strategy: str) -> None:
    with hamlyn.open("alice", strategy=strategy) as alice, hamlyn.open(strategy=strategy) as me:
        box = alice.bind_mailbox("box")
        outbox = me.connect_mailbox("alice/box", WAIT)
        outbox.send(b"before", WAIT)
        mail = box.recv(WAIT)
        info = box.info
        objects = {"MailboxReceiver": box, "MailboxSender": outbox, "Mail": mail}

        def act() -> None:
            for name, use in USES.items():
                refused(lambda: use(objects[name.partition(".")[0]]))
            refused(lambda: alice.bind_mailbox("other"))
            refused(lambda: alice.open_mailbox())
            refused(lambda: me.connect_mailbox("alice/box", 0.01))
            refused(lambda: asyncio.run(awaited(lambda: me.connect_mailbox_async("alice/box", 0.01))))
            # Copied facts, and memory of the receiver's own.
            assert info.waiting == 0
            for end in (outbox, box, me, alice):
                end.close()

        in_child(act)
        assert mail == b"before"
        outbox.send(b"after", WAIT)
        assert box.recv_bytes(WAIT) == b"after"
        fenced(alice, outbox)


def test_one_thread_at_a_time(pair: Any) -> None:
    alice, me = pair
    box, outbox = alice.bind_mailbox("box"), me.connect_mailbox("alice/box", WAIT)
    came: list[Optional[bytes]] = []
    thread = threading.Thread(target=lambda: came.append(box.recv_bytes()))
    thread.start()
    uses = [use for name, use in USES.items() if name in ("MailboxReceiver.recv", "MailboxReceiver.ticket", "MailboxReceiver.info")]
    for use in uses:
        while True:
            try:
                use(box)
            except hamlyn.InUse:
                break
    outbox.send(b"end", WAIT)
    me.flush(WAIT)
    thread.join()
    assert came == [b"end"]


@pytest.mark.parametrize("strategy", ["proc", "np", "inject", "receive"])
def test_a_thread_waits_while_others_use_the_manager(strategy: str) -> None:
    with hamlyn.open("alice", strategy=strategy, shared=True) as alice, alice.share() as other:
        box, rest = alice.bind_mailbox("box"), other.bind_mailbox("rest")
        came: list[Optional[bytes]] = []
        thread = threading.Thread(target=lambda: came.extend(box.recv_bytes(WAIT) for _ in range(2)))
        thread.start()
        to_rest, to_box = (other.connect_mailbox(f"alice/{item}", WAIT) for item in ("rest", "box"))
        for number in range(1000):
            to_rest.send(b"%d" % number, WAIT)
            assert rest.recv_bytes(WAIT) == b"%d" % number
        for text in (b"one", b"two"):
            to_box.send(text, WAIT)
        thread.join()
        assert came == [b"one", b"two"]
        to_box.fence(WAIT)


def test_bad_input(pair: Any) -> None:
    alice, me = pair
    box = alice.bind_mailbox("box")
    outbox = me.connect_mailbox("alice/box", WAIT)
    for wrong, said in (
        ("text", "not str: encode it first"),
        (5, "a message is bytes or another buffer.*not int"),
        (numpy.array([None]), "addresses, not data"),
        ((ctypes.c_void_p * 2)(), "addresses, not data"),
    ):
        for send in (outbox.send, outbox.send_async):
            with pytest.raises(TypeError, match=said):
                send(wrong)
    with pytest.raises(hamlyn.TooLong, match=f"{LONGEST + 1} bytes"):
        outbox.send(bytes(LONGEST + 1))
    for queue_bytes in (0, 63, (1 << 30) + 1):
        with pytest.raises(hamlyn.Invalid, match=f"a queue of {queue_bytes} bytes: from 64"):
            alice.open_mailbox(queue_bytes=queue_bytes)
    with pytest.raises(hamlyn.Invalid, match="peer_bytes is an int from 0 to 4294967295, not -1"):
        alice.bind_mailbox("other", peer_bytes=-1)
    with pytest.raises(hamlyn.Taken, match="box"):
        alice.bind_mailbox("box")
    with pytest.raises(hamlyn.Refused, match="is a mailbox, not a datagram"):
        me.connect_datagram("alice/box", WAIT)
    inbox = alice.bind_datagram("inbox")
    with pytest.raises(hamlyn.Refused, match="is a datagram, not a mailbox"):
        me.connect_mailbox("alice/inbox", WAIT)
    with pytest.raises(hamlyn.NotFound):
        me.connect_mailbox("alice/nothing", 0.01)
    with pytest.raises(TypeError, match="or a Ticket; not int"):
        me.connect_mailbox(5)
    with pytest.raises(TypeError):
        hamlyn.MailboxReceiver()
    # None of that has harmed anybody.
    outbox.send(b"short", WAIT)
    assert box.recv_bytes(WAIT) == b"short" and box.recv(0) is None and inbox.recv(0) is None


def leaving() -> None:
    with hamlyn.open() as me:
        outbox = me.connect_mailbox("alice/box", WAIT)
        outbox.send(b"last words", WAIT)
        outbox.fence(WAIT)


def owning() -> None:
    with hamlyn.open("bob", strategy="np") as bob:
        box = bob.bind_mailbox("box")
        while True:
            box.recv()


def test_mail_outlives_its_sender_and_senders_learn_of_the_end() -> None:
    with hamlyn.open("alice", strategy="np") as alice:
        box = alice.bind_mailbox("box")
        with running(leaving):
            pass
        assert box.info.waiting == 1
        mail = box.recv(WAIT)
        assert mail == b"last words"
    with hamlyn.open() as me, doomed(owning) as peer:
        outbox = me.connect_mailbox("bob/box", WAIT)
        outbox.send(b"heard", WAIT)
        outbox.fence(WAIT)
        peer.kill()
        while me.next_event(WAIT).kind != "peer_left":
            pass
        with pytest.raises(hamlyn.PeerGone):
            outbox.send(b"lost", WAIT)
        # All that was accepted had come.
        outbox.fence(WAIT)
        assert outbox.message_bytes_max is None


def on_two(ports: list[int]) -> None:
    with hamlyn.open(network=network(1, ports)) as me:
        outbox = me.connect_mailbox("one/alice/box", WAIT)
        longest = outbox.message_bytes_max
        assert longest is not None and 1000 < longest < LONGEST
        for length in (0, 1, 56, 57, 500, longest):
            outbox.send(pattern(5, length), WAIT)
        # The longest grows while the path is probed, but no datagram of a network has so many.
        with pytest.raises((hamlyn.TooLong, hamlyn.Invalid), match=str(LONGEST)):
            outbox.send(bytes(LONGEST), WAIT)
        outbox.fence(WAIT)


def test_between_hosts() -> None:
    ports = free_ports(2)
    with hamlyn.open("alice", network=network(0, ports)) as alice, running(on_two, ports) as peer:
        box = alice.bind_mailbox("box")
        for length in (0, 1, 56, 57, 500):
            mail = box.recv(WAIT)
            assert mail == pattern(5, length) and mail.sender.node != 0
        mail = box.recv(WAIT)
        assert mail == pattern(5, len(mail)) and len(mail) > 1000
        serve(alice, peer)


def test_a_receiver_that_takes_nothing_does_not_stop_its_sender() -> None:
    with pytest.raises(ValueError, match="buffer_bytes_per_peer"):
        hamlyn.open(buffer_bytes_per_peer=3 << 20)
    with (
        hamlyn.open("busy", buffer_bytes_per_peer=4 << 20, buffer_bytes_total=64 << 20) as busy,
        hamlyn.open(patience=0.0, buffer_bytes_per_peer=0) as me,
        busy.bind_mailbox("in") as box,
        me.connect_mailbox("busy/in", WAIT) as outbox,
    ):
        for number in range(40_000):
            outbox.send(number.to_bytes(8, "little"), WAIT)
        events = list(iter(lambda: me.next_event(0), None))
        (buffering,) = [event for event in events if event.kind == "buffering"]
        assert buffering.count is not None and buffering.count >= 2 << 20
        assert buffering.peer is not None and buffering.direction == "outgoing"
        used = me.interface.log_use(buffering.peer)
        assert used is not None and used["episodes"] == 1 and used["log_bytes"] == 4 << 20
        assert used["spilled_bytes"] >= used["waiting_bytes"] == used["most_bytes"] >= 2 << 20
        assert used["most_pages"] == used["pages"] >= used["waiting_bytes"] >> 12 and used["pauses"] == 0
        for number in range(40_000):
            assert box.recv(WAIT) == number.to_bytes(8, "little")
        heard = [(event.kind, event.direction) for event in iter(lambda: busy.next_event(0), None)]
        assert heard[-2:] == [("buffering", "incoming"), ("drained", "incoming")]
        outbox.send(b"from one that lends none", WAIT)
        assert busy.interface.log_use(box.recv(WAIT).sender) is None


def test_the_sender_of_a_stream_goes_ahead_of_a_reader_that_takes_nothing() -> None:
    with (
        hamlyn.open("busy", buffer_bytes_per_peer=4 << 20) as busy,
        hamlyn.open(patience=0.0) as me,
    ):
        with pytest.raises(hamlyn.Invalid, match="4 KiB"):
            busy.bind_stream("log", piece_bytes=2048, ahead=True)
        with (
            busy.bind_stream("log", piece_bytes=1 << 16, limit_bytes=2 << 20, ahead=True) as log,
            me.connect_stream("busy/log", WAIT) as sender,
        ):
            for number in range(32):
                sender.send(bytes([number]) * (1 << 16), WAIT)
            for number in range(32):
                assert log.recv_bytes(WAIT) == bytes([number]) * (1 << 16)
