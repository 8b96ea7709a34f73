"""The lower layer, and one-sided operations, between two processes."""

from __future__ import annotations

import struct
import threading

import pytest
from conftest import running

import hamlyn

WAIT = 60


def one_sided_peer() -> None:
    with hamlyn.open() as me:
        interface = me.interface
        ticket = hamlyn.Ticket(me.ask("alice", "memory", WAIT))
        memory = interface.open_initiator(interface.target(ticket, WAIT))
        memory.put(0, bytes(range(200)), WAIT)
        assert memory.read(10, 20, WAIT) == bytes(range(10, 30))
        buffer = bytearray(16)
        memory.read_into(0, buffer, WAIT)
        assert buffer == bytes(range(16))
        assert memory.change(1024, "add", 5, WAIT) == 0
        assert memory.change(1024, "add", -7, WAIT) == 5
        assert memory.read_word(1024, WAIT) == (1 << 64) - 2
        assert memory.change(1024, "max", 3, WAIT) == (1 << 64) - 2
        assert memory.change(1024, "min", -1, WAIT) == 3
        assert memory.change(1024, "swap", 0b1100, WAIT) == (1 << 64) - 1
        assert memory.change(1024, "and", 0b0110, WAIT) == 0b1100
        assert memory.change(1024, "or", 0b0001, WAIT) == 0b0100
        assert memory.change(1024, "xor", 0b0100, WAIT) == 0b0101
        assert memory.compare_swap(1024, 1, 9, WAIT) == 1
        assert memory.compare_swap(1024, 1, 10, WAIT) == 9
        assert memory.float_add(1032, 1.5, WAIT) == 0.0
        assert memory.float_add(1032, 2.0, WAIT) == 1.5
        with pytest.raises(ValueError, match='"add"'):
            memory.change(0, "subtract", 1)
        with pytest.raises(hamlyn.Invalid, match="operand is an int from"):
            memory.change(0, "add", 1 << 65)
        with pytest.raises(hamlyn.TooLong):
            memory.read(4000, 200, WAIT)
        assert memory.outstanding == 0
        # What is not granted.
        other = hamlyn.Ticket(me.ask("alice", "read-only", WAIT))
        reading = interface.open_initiator(interface.target(other, WAIT))
        assert reading.read(0, 4, WAIT) == b"only"
        with pytest.raises(hamlyn.Refused):
            reading.put(0, b"x", WAIT)


def test_one_sided() -> None:
    with hamlyn.open("alice", strategy="np") as alice:
        interface = alice.interface
        area = interface.allocate(4096)
        slot = interface.open_slot(area, rights="all")
        alice.offer("memory", bytes(slot.ticket()))
        other = interface.allocate(64)
        other.write(0, b"only")
        read_only = interface.open_slot(other, rights="read")
        alice.offer("read-only", bytes(read_only.ticket()))
        with running(one_sided_peer):
            pass
        assert area.read(0, 200) == bytes(range(200))
        assert struct.unpack("<Qd", area.read(1024, 16)) == (9, 3.5)


def test_an_operation_that_is_not_answered_in_time() -> None:
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        area = alice.interface.allocate(4096)
        slot = alice.interface.open_slot(area, rights="all")
        memory = me.interface.open_initiator(me.interface.target(slot.ticket(), WAIT))
        # The owner's program makes no call.
        area.write(0, b"abcd")
        with pytest.raises(hamlyn.TimedOut):
            memory.read(0, 4, 0.01)
        with pytest.raises(hamlyn.TimedOut):
            memory.put(0, b"efgh", 0)
        while area.read(0, 4) != b"efgh":
            alice.poll()
        # What comes late for the first read is not taken for the next.
        stop = threading.Event()

        def pump() -> None:
            while not stop.is_set():
                alice.poll()

        pumping = threading.Thread(target=pump)
        pumping.start()
        try:
            assert memory.read(0, 4, WAIT) == b"efgh"
            assert memory.outstanding == 0
        finally:
            stop.set()
            pumping.join()


def low_level_peer() -> None:
    with hamlyn.open() as me:
        interface = me.interface
        fast = interface.target(hamlyn.Ticket(me.ask("alice", "fast", WAIT)), WAIT)
        interface.send_msg(fast, b"placed", 16, word=77, timeout=WAIT)
        entry = interface.target(hamlyn.Ticket(me.ask("alice", "entry", WAIT)), WAIT)
        interface.send_msg(entry, b"with metadata", metadata=b"meta", timeout=WAIT)
        stores = interface.target(hamlyn.Ticket(me.ask("alice", "stores", WAIT)), WAIT)
        for number in range(10):
            interface.store(stores, 100 * number, bytes([number]) * 100, WAIT)
        me.fence(WAIT)


def test_messages_and_stores() -> None:
    with hamlyn.open("alice") as alice:
        interface = alice.interface
        queue = interface.open_queue(64)
        area = interface.allocate(4096)
        slot = interface.open_slot(area, queue=queue, entries=2, mode="normal")
        counted = interface.allocate(1024)
        store_slot = interface.open_slot(counted, entries=1, counting_stores=True)
        alice.offer("fast", bytes(slot.ticket()))
        one_shot_area = interface.allocate(4096)
        one_shot = interface.open_slot(one_shot_area, queue=queue, entries=1, mode="paranoid_one_shot")
        alice.offer("entry", bytes(interface.arm(one_shot, 0)))
        alice.offer("stores", bytes(store_slot.entry_ticket(0)))
        with running(low_level_peer) as peer:
            first = interface.rcv(queue, WAIT)
            assert (first.slot, first.metadata_index, first.word) == (slot.number, None, 77)
            assert interface.sender_of(first).process == peer.pid
            assert area.read(16, 6) == b"placed"
            second = interface.rcv(queue, WAIT)
            assert (second.slot, second.metadata_index) == (one_shot.number, 0)
            assert one_shot_area.read(0, 13) == b"with metadata"
            assert one_shot.metadata(0) == b"meta"
            while store_slot.stored_bytes(0) != 1000:
                alice.poll()
            assert counted.read(0, 1000) == b"".join(bytes([number]) * 100 for number in range(10))
            # Its fence is answered here.
            while peer.is_alive():
                alice.poll()
        assert interface.rcv(queue, 0) is None
        ticket = slot.ticket()
        interface.rekey_slot(slot)
        assert slot.ticket() != ticket
        interface.close_slot(slot)
        with pytest.raises(hamlyn.HandleClosed):
            slot.ticket()
        with pytest.raises(hamlyn.Invalid):
            interface.close_slot(slot)


def test_what_belongs_to_another_manager_is_refused() -> None:
    with hamlyn.open() as one, hamlyn.open() as other:
        area = one.interface.allocate(64)
        queue = one.interface.open_queue(8)
        with pytest.raises(hamlyn.Invalid, match="another manager's"):
            other.interface.open_slot(area)
        with pytest.raises(hamlyn.Invalid, match="another manager's"):
            other.interface.rcv(queue, 0)


def test_bounds_of_an_area() -> None:
    with hamlyn.open() as me:
        area = me.interface.allocate(64)
        for wrong in (lambda: area.read(0, 65), lambda: area.read(64, 1), lambda: area.write(60, b"12345"), lambda: area.load_u64(60)):
            with pytest.raises(IndexError, match="area"):
                wrong()
        with pytest.raises(IndexError):
            area.read((1 << 64) - 1, 2)
        with pytest.raises(hamlyn.Invalid):
            me.interface.open_slot(area, offset=60, length=8)
        with pytest.raises(ValueError, match="rights"):
            me.interface.open_slot(area, rights="everything")
        with pytest.raises(ValueError, match="mode"):
            me.interface.open_slot(area, mode="fast")
