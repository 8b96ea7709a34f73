"""Termini of the program's own; many messages at a time, gathered ones; what an owner learns of slots and links."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import Iterator

import pytest
from conftest import running
from test_hosts import free_ports, network

import hamlyn

WAIT = 60


@contextlib.contextmanager
def opened(entries: int = 0, queue_entries: int = 1024, **alice: object) -> Iterator[tuple]:
    """A receiver with a queue, and a sender's way to it."""
    with hamlyn.open("alice", **alice) as alice, hamlyn.open() as me:
        area = alice.interface.allocate(1 << 20)
        queue = alice.interface.open_queue(queue_entries)
        slot = alice.interface.open_slot(area, queue=queue, entries=entries)
        ticket = slot.entry_ticket(0) if entries else slot.ticket()
        yield alice, me, area, queue, slot, me.interface.target(ticket, WAIT)


def test_a_terminus_of_its_own() -> None:
    with opened() as (alice, me, area, queue, _, target):
        terminus = me.interface.open_terminus(queue_entries=4, priority=3)
        handle = me.interface.send_msg(target, b"by another way", word=5, terminus=terminus, timeout=WAIT)
        assert handle.sequence > 0
        assert me.interface.drain(handle, WAIT) == "sent"
        assert me.interface.completion(handle) == "sent"
        assert alice.interface.rcv(queue, WAIT).word == 5
        assert area.read(0, 14) == b"by another way"
        other = me.interface.send_msg(target, b"by the manager's", timeout=WAIT)
        assert other.sequence > handle.sequence
        me.interface.close_terminus(terminus)
        for late in (
            lambda: me.interface.send_msg(target, b"x", terminus=terminus),
            lambda: me.interface.close_terminus(terminus),
            lambda: me.interface.bind_area(terminus, area),
        ):
            with pytest.raises(hamlyn.Invalid, match="closed"):
                late()
        for wrong in (
            lambda: me.interface.open_terminus(queue_entries=0),
            lambda: me.interface.open_terminus(queue_entries=1 << 20),
            lambda: me.interface.open_terminus(priority=0),
            lambda: alice.interface.completion(handle),
            lambda: alice.interface.drain(handle, 0),
        ):
            with pytest.raises(hamlyn.Invalid):
                wrong()
        with pytest.raises(hamlyn.Invalid, match="priority is an int from 0 to 255"):
            me.interface.open_terminus(priority=256)
        with hamlyn.open() as third:
            foreign = third.interface.open_terminus()
            with pytest.raises(hamlyn.Invalid, match="another manager's"):
                me.interface.send_msg(target, b"x", terminus=foreign)


def test_a_terminus_has_as_many_areas_as_it_asks_for() -> None:
    with opened() as (alice, me, area, queue, _, target):
        terminus = me.interface.open_terminus(send_areas=300)
        parts = [me.interface.allocate(8) for _ in range(300)]
        for number, part in enumerate(parts):
            part.write(0, b"%04d" % number)
        tags = [me.interface.bind_area(terminus, part) for part in parts]
        with pytest.raises(hamlyn.SystemFailed, match="300"):
            me.interface.bind_area(terminus, parts[0])
        handle = me.interface.send_gather(terminus, target, [(tag, 0, 4) for tag in tags])
        assert me.interface.drain(handle, WAIT) == "sent"
        assert alice.interface.rcv(queue, WAIT) is not None
        assert area.read(0, 1200) == b"".join(b"%04d" % number for number in range(300))
        with pytest.raises(hamlyn.Invalid, match="1024"):
            me.interface.open_terminus(send_areas=1025)


def test_termini_are_not_without_number() -> None:
    with hamlyn.open() as me:
        termini = []
        with pytest.raises(hamlyn.SystemFailed, match="close one"):
            for _ in range(1 << 16):
                termini.append(me.interface.open_terminus(queue_entries=1))
        me.interface.close_terminus(termini.pop())
        me.interface.open_terminus()


@pytest.mark.parametrize("strategy", ["proc", "np"])
def test_many_messages_in_one_call(strategy: str) -> None:
    with opened(strategy=strategy) as (alice, me, area, queue, slot, target):
        messages = [hamlyn.OutgoingMessage(b"%03d" % number, 4 * number, word=number) for number in range(200)]
        received = []

        def receive() -> None:
            while len(received) < 201:
                arrivals = alice.interface.receive_many(queue, 64, WAIT)
                assert 1 <= len(arrivals) <= 64
                received.extend(arrivals)

        receiving = threading.Thread(target=receive)
        receiving.start()
        sent = me.interface.send_many(target, messages, timeout=WAIT)
        assert (sent.count, sent.stopped_by) == (200, None) and me.interface.drain(sent.last, WAIT) == "sent"
        terminus = me.interface.open_terminus()
        # Buffers are messages, too.
        sent = me.interface.send_many(target, iter([bytearray(b"end")]), terminus=terminus, timeout=WAIT)
        assert (sent.count, me.interface.drain(sent.last, WAIT)) == (1, "sent")
        receiving.join()
        assert [arrival.word for arrival in received] == [*range(200), 0]
        assert {arrival.slot for arrival in received} == {slot.number}
        assert area.read(0, 12) == b"end\x00001\x00002\x00"
        none = me.interface.send_many(target, [])
        assert (none.count, none.last, none.stopped_by) == (0, None, None)


def test_what_cannot_be_sent_ends_the_row() -> None:
    with opened(buffer_bytes_per_peer=0) as (alice, me, _, queue, _, target):
        outside = hamlyn.OutgoingMessage(b"12", (1 << 20) - 1)
        with pytest.raises(hamlyn.TooLong):
            me.interface.send_many(target, [outside, b"after it"], timeout=WAIT)
        sent = me.interface.send_many(target, [b"one", b"two", outside, b"after it"], timeout=WAIT)
        assert sent.count == 2 and isinstance(sent.stopped_by, hamlyn.TooLong)
        me.flush(WAIT)
        assert len(alice.interface.receive_many(queue, 10, WAIT)) == 2
        assert alice.interface.receive_many(queue, 10, 0) == []
        for wrong, said in [(["text"], "not str"), ([b"good", 5], "not int"), (5, "iterable")]:
            with pytest.raises(TypeError, match=said):
                me.interface.send_many(target, wrong)
        # Nothing of a row that cannot be read is sent.
        assert alice.interface.receive_many(queue, 10, 0.01) == []
        # The receiver makes no call, and there is room for some.
        full = me.interface.send_many(target, [b"x"] * 100_000, timeout=0.05)
        assert 0 < full.count < 100_000 and isinstance(full.stopped_by, hamlyn.TimedOut)
        with pytest.raises(hamlyn.TimedOut):
            me.interface.send_many(target, [b"x"], timeout=0)


def test_a_row_with_long_messages() -> None:
    with opened(entries=1) as (alice, me, area, queue, _, target):
        long = bytes(range(250)) * 2000
        got = []
        receiving = threading.Thread(target=lambda: got.extend(alice.interface.rcv(queue, WAIT) for _ in range(3)))
        receiving.start()
        row = [hamlyn.OutgoingMessage(b"short", metadata=b"m" * 60), hamlyn.OutgoingMessage(long, 1000), b"last"]
        sent = me.interface.send_many(target, row, timeout=WAIT)
        assert sent.count == 3 and me.interface.drain(sent.last, WAIT) == "sent"
        receiving.join()
        assert [arrival.metadata_index for arrival in got] == [0, 0, 0]
        assert area.read(1000, len(long)) == long and area.read(0, 5) == b"lastt"


def test_gathered_messages() -> None:
    with opened(entries=1) as (alice, me, area, queue, _, target):
        terminus = me.interface.open_terminus()
        parts = me.interface.allocate(4096)
        parts.write(0, b"gathered from here and there")
        first = me.interface.bind_area(terminus, parts)
        second = me.interface.bind_area(terminus, parts, 1024, 1024)
        parts.write(1024, b"elsewhere")
        handle = me.interface.send_gather(terminus, target, [(first, 0, 9), (second, 0, 9), (first, 23, 5)], 64, metadata=b"meta")
        assert me.interface.drain(handle, WAIT) == "sent"
        assert alice.interface.rcv(queue, WAIT).metadata_index == 0
        assert area.read(64, 23) == b"gathered elsewherethere"
        me.interface.unbind_area(terminus, first)
        for wrong in (
            lambda: me.interface.send_gather(terminus, target, [(first, 0, 9)]),
            lambda: me.interface.send_gather(terminus, target, [(second, 1020, 9)]),
            lambda: me.interface.send_gather(terminus, target, [(second, 0, 1)] * 1025),
            lambda: me.interface.unbind_area(terminus, first),
            lambda: me.interface.bind_area(terminus, parts, 4000, 100),
            lambda: me.interface.bind_area(terminus, area),
        ):
            with pytest.raises(hamlyn.Invalid):
                wrong()
        for wrong in (
            lambda: me.interface.send_gather(None, target, []),
            lambda: me.interface.send_gather(terminus, target, [(second, 0)]),
            lambda: me.interface.send_gather(terminus, target, 5),
        ):
            with pytest.raises((TypeError, ValueError)):
                wrong()


def test_metadata_are_gathered() -> None:
    with opened(entries=1) as (alice, me, area, queue, slot, target):
        terminus = me.interface.open_terminus()
        parts = me.interface.allocate(4096)
        parts.write(100, bytes(range(60)))
        tag = me.interface.bind_area(terminus, parts, 100, 100)
        metadata = me.interface.gather_metadata(terminus, (tag, 0, 60))
        assert metadata == bytes(range(60))
        # A copy: it does not change with the area.
        parts.write(100, b"others")
        handle = me.interface.send_gather(terminus, target, [(tag, 0, 6)], metadata=metadata)
        assert me.interface.drain(handle, WAIT) == "sent"
        assert alice.interface.rcv(queue, WAIT).metadata_index == 0
        assert slot.metadata(0) == bytes(range(60)) and area.read(0, 6) == b"others"
        assert me.interface.gather_metadata(terminus, (tag, 97, 3)) == bytes(3)
        assert me.interface.gather_metadata(terminus, (tag, 0, 0)) == b""
        for length in (61, 1 << 63):
            with pytest.raises(hamlyn.TooLong, match="60"):
                me.interface.gather_metadata(terminus, (tag, 0, length))
        for wrong in ((tag, 41, 60), (tag, (1 << 64) - 1, 2), (tag + 1, 0, 1), (255, 0, 1)):
            with pytest.raises(hamlyn.Invalid, match="area"):
                me.interface.gather_metadata(terminus, wrong)
        for wrong in ((tag, 0), (tag, 0, "1"), tag, None):
            with pytest.raises((TypeError, ValueError)):
                me.interface.gather_metadata(terminus, wrong)
        with pytest.raises(hamlyn.Invalid, match="the tag of piece is an int from 0 to 65535"):
            me.interface.gather_metadata(terminus, (1 << 16, 0, 1))
        with pytest.raises(hamlyn.Invalid, match="another manager's"):
            alice.interface.gather_metadata(terminus, (tag, 0, 1))
        me.interface.unbind_area(terminus, tag)
        with pytest.raises(hamlyn.Invalid, match="area"):
            me.interface.gather_metadata(terminus, (tag, 0, 1))
        me.interface.close_terminus(terminus)
        with pytest.raises(hamlyn.Invalid, match="closed"):
            me.interface.gather_metadata(terminus, (tag, 0, 1))


def test_what_waits_is_not_unbound() -> None:
    with opened(entries=1) as (alice, me, _, queue, _, target):
        terminus = me.interface.open_terminus()
        parts = me.interface.allocate(1 << 20)
        tag = me.interface.bind_area(terminus, parts)
        # More than there is room for, and the receiver makes no call.
        handles = []
        with pytest.raises(hamlyn.TimedOut):
            while True:
                handles.append(me.interface.send_gather(terminus, target, [(tag, 0, 1 << 20)]))
        assert me.interface.completion(handles[-1]) == "pending"
        assert me.interface.drain(handles[-1], 0.01) == "pending"
        with pytest.raises(hamlyn.TimedOut, match="wait for them"):
            me.interface.unbind_area(terminus, tag)
        stop = threading.Event()

        def receive() -> None:
            while not stop.is_set():
                alice.interface.rcv(queue, 0.001)

        receiving = threading.Thread(target=receive)
        receiving.start()
        try:
            assert me.interface.drain(handles[-1], WAIT) == "sent"
        finally:
            stop.set()
            receiving.join()
        me.interface.unbind_area(terminus, tag)


def test_notifications_that_were_lost() -> None:
    with opened(queue_entries=4) as (alice, me, _, queue, _, target):
        for number in range(20):
            me.interface.send_msg(target, b"x", word=number, timeout=WAIT)
            me.flush(WAIT)
            alice.poll()
        taken, lost = [], 0
        for _ in range(10):
            try:
                arrivals = alice.interface.receive_many(queue, 3, 0)
            except hamlyn.Overrun:
                lost += 1
                continue
            taken += [arrival.word for arrival in arrivals]
        assert lost >= 1 and taken == sorted(taken) and taken[-1] == 19
        assert queue.lost + len(taken) == 20
        alice.interface.close_queue(queue)
        with pytest.raises(hamlyn.Invalid, match="closed"):
            alice.interface.rcv(queue, 0)
        with pytest.raises(hamlyn.HandleClosed):
            queue.lost


def test_ctrl_c_ends_calls_that_wait() -> None:
    with opened(buffer_bytes_per_peer=0) as (_, me, _, _, _, target), hamlyn.open() as third:
        queue = third.interface.open_queue(8)
        handle = me.interface.send_msg(target, b"x", timeout=WAIT)
        me.interface.send_many(target, [b"x"] * 100_000, timeout=0)
        waits = [
            lambda: third.interface.receive_many(queue, 8),
            lambda: third.interface.rcv(queue),
            lambda: third.interface.await_completions(hamlyn.CompletionCounter(), 1),
            lambda: me.interface.send_msg(target, b"short"),
            lambda: me.interface.send_many(target, [b"short"] * 100),
        ]
        del handle

        class Alarm(Exception):
            pass

        def alarm(*_: object) -> None:
            raise Alarm

        before = signal.signal(signal.SIGALRM, alarm)
        try:
            for wait in waits:
                with pytest.raises(Alarm):
                    # Sooner or later it waits; an alarm that comes before is as good.
                    signal.setitimer(signal.ITIMER_REAL, 0.1)
                    wait()
        finally:
            signal.signal(signal.SIGALRM, before)


def test_slots_tell_of_themselves() -> None:
    with opened(entries=2) as (alice, me, _, _, slot, target):
        info = alice.interface.slot_info(slot)
        assert (info.length_bytes, info.mode, info.rights, info.revoked) == (1 << 20, "normal", "write", False)
        assert (info.metadata_entries, info.counting, info.grants, info.refusals) == (2, 32, 0, {})
        alice.interface.revoke_slot(slot)
        me.interface.send_msg(target, b"too late", timeout=WAIT)
        me.flush(WAIT)
        while not (info := alice.interface.slot_info(slot)).refusals:
            alice.poll()
        assert info.revoked and sum(info.refusals.values()) == 1
        alice.interface.rekey_slot(slot)
        assert not alice.interface.slot_info(slot).revoked
        counted = alice.interface.open_slot(alice.interface.allocate(64), entries=1, counting_stores=True, rights="read+atomic")
        info = alice.interface.slot_info(counted)
        assert (info.rights, info.counting) == ("read+atomic", 64)
        alice.interface.close_slot(slot)
        for wrong in (lambda: alice.interface.slot_info(slot), lambda: me.interface.slot_info(counted), lambda: alice.interface.revoke_slot(slot)):
            with pytest.raises(hamlyn.Invalid):
                wrong()
        with pytest.raises(TypeError):
            alice.interface.slot_info(5)


def on_the_other_host(ports: list[int]) -> None:
    with hamlyn.open(network=network(1, ports)) as me:
        outbox = me.connect_datagram("one/alice/inbox", WAIT)
        outbox.send(b"hello")
        outbox.fence(WAIT)
        target = me.interface.target(hamlyn.Ticket(me.ask("one/alice", "ticket", WAIT)), WAIT)
        state = me.interface.connection_state(me.interface.peer_of(target))
        assert not state.is_encrypted and state.end is None and state.frame_bytes > 500
        assert state.peer.startswith("127.0.0.1:") and state.local != state.peer
        assert state.transport["sent"] >= 1 and state.transport["offered"] >= state.transport["acknowledged"] - 1
        assert state.paths[0]["sent"] >= 1 and state.paths[0]["is_inactive"] == 0
        assert state.forgotten == 0
        outbox.send(b"end")
        me.flush(WAIT)


def test_links_to_other_hosts_tell_how_they_are() -> None:
    ports = free_ports(2)
    with hamlyn.open("alice", network=network(0, ports)) as alice, running(on_the_other_host, ports):
        inbox = alice.bind_datagram("inbox")
        alice.offer("ticket", bytes(inbox.ticket))
        datagram = inbox.recv(WAIT)
        peer = datagram.sender
        assert alice.interface.connection_state(peer).transport["taken"] >= 1
        datagram.release()
        assert inbox.recv_bytes(WAIT) == b"end"
    with opened() as (_, me, _, _, _, target):
        # Within a host there is no connection.
        assert me.interface.connection_state(me.interface.peer_of(target)) is None
        with pytest.raises(TypeError):
            me.interface.connection_state(target)
