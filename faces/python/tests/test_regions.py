"""Regions that all peers may attach, and windows on them: what is read is the owner's memory or an error, and nothing outlives the region."""

from __future__ import annotations

import gc
import mmap
import os
import threading

import numpy
import pytest
from conftest import doomed, running

import hamlyn

WAIT = 60
LENGTH = 2 * 4096


class Owner:
    """A manager with a shared slot."""

    def __init__(self, manager: hamlyn.Manager, rights: str = "all", length: int = LENGTH) -> None:
        self.manager = manager
        self.interface = manager.interface
        self.area = self.interface.allocate(length, "sparse")
        self.slot = self.interface.open_slot(self.area, rights=rights)
        self.region = self.interface.share(self.slot, access="read" if rights == "read" else "write")
        manager.offer("memory", bytes(self.region.ticket))


def attach(me: hamlyn.Manager) -> hamlyn.Attached:
    ticket = hamlyn.RegionTicket(me.ask("alice", "memory", WAIT))
    me.interface.target(ticket.ticket, WAIT)
    return me.interface.attach(ticket, WAIT)


@pytest.fixture
def pair():
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        yield alice, me


def holder() -> None:
    with hamlyn.open() as me:
        attached = attach(me)
        window = attached.window()
        assert len(window) == LENGTH and window.writable and window.lasts
        assert window.read(8, 5) == b"begin"
        window.write(100, b"from the holder")
        assert window.change(0, "add", 3) == 7
        # An initiator of the slot operates in the memory itself: the owner makes no call.
        memory = me.interface.open_initiator(me.interface.target(attached.ticket.ticket, WAIT))
        assert memory.read(100, 8, WAIT) == b"from the"
        memory.put(200, b"put", WAIT)
        assert memory.change(0, "add", 1, WAIT) == 10
        assert memory.window().load_u64(0) == 11


def test_operations_are_loads_and_stores() -> None:
    with hamlyn.open("alice") as alice:
        owner = Owner(alice)
        owner.area.store_u64(0, 7)
        owner.area.write(8, b"begin")
        with running(holder):
            pass
        assert owner.area.load_u64(0) == 11
        assert owner.area.read(100, 15) == b"from the holder"
        assert owner.area.read(200, 3) == b"put"
        assert owner.interface.regions_shared == 1
        owner.region.revoke()
        assert owner.interface.regions_shared == 0
        assert owner.area.load_u64(0) == 11


def test_words_of_32_bits(pair) -> None:
    alice, me = pair
    owner = Owner(alice)
    window = attach(me).window()
    owner.area.store_u64(8, 0)
    window.store_u32(12, 0xFFFF_FFFF)
    assert window.load_u32(12) == 0xFFFF_FFFF and window.load_u32(8) == 0
    assert owner.area.load_u64(8) == 0xFFFF_FFFF << 32
    assert window.change(12, "add", 2, bits=32) == 0xFFFF_FFFF
    assert window.change(12, "min", -5, bits=32) == 1
    assert window.compare_swap(12, -5, 7, bits=32) == (1 << 32) - 5
    assert window.compare_swap(12, -5, 8, bits=32) == 7
    # As the owner's own windows, and operations in the memory itself, do.
    assert owner.area.window().change(12, "swap", 1, bits=32) == 7
    memory = me.interface.open_initiator(me.interface.target(owner.slot.ticket(), WAIT))
    assert memory.change(12, "or", 6, WAIT, bits=32) == 1
    assert memory.float_add(16, 1.5, WAIT, bits=32) == 0.0 and memory.float_add(16, 1.0, WAIT, bits=32) == 1.5
    assert owner.area.load_u64(8) == 7 << 32
    for wrong in (
        lambda: window.change(2, "add", 1, bits=32),
        lambda: window.change(LENGTH - 2, "add", 1, bits=32),
        lambda: window.change(12, "add", 1),
        lambda: window.load_u32(LENGTH - 3),
        lambda: window.store_u32(LENGTH, 1),
    ):
        with pytest.raises(IndexError):
            wrong()
    with pytest.raises(ValueError, match="64 or 32"):
        window.change(12, "add", 1, bits=8)
    with pytest.raises(hamlyn.Invalid, match="new is an int from"):
        window.compare_swap(12, 0, 1 << 32, bits=32)
    for value in (1 << 32, -1):
        with pytest.raises(hamlyn.Invalid, match="value is an int"):
            window.store_u32(0, value)
    owner.region.revoke()
    for ended in (lambda: window.load_u32(0), lambda: window.store_u32(0, 1), lambda: window.change(0, "add", 1, bits=32)):
        with pytest.raises(hamlyn.PeerGone):
            ended()


def test_32_bits_that_may_be_read_only(pair) -> None:
    alice, me = pair
    owner = Owner(alice, rights="read")
    window = attach(me).window()
    assert window.load_u32(4) == 0
    for write in (lambda: window.store_u32(4, 1), lambda: window.change(4, "add", 1, bits=32), lambda: window.compare_swap(4, 0, 1, bits=32)):
        with pytest.raises(hamlyn.Refused):
            write()
    assert owner.area.load_u64(0) == 0


def test_an_area_lies_where_it_is_to(pair) -> None:
    alice, me = pair
    # A place that nothing else has.
    place = mmap.mmap(-1, 1 << 20)
    address = numpy.frombuffer(place, "u1").ctypes.data
    with pytest.raises(hamlyn.Taken, match="mapped"):
        alice.interface.allocate(1 << 20, "sparse", address=address)
    place.close()
    area = alice.interface.allocate(8000, "sparse", address=address)
    assert len(area) == 8192
    area.write(4096, b"here")
    shown = numpy.frombuffer(area.window(trust_peers=True), "u1")
    assert shown.ctypes.data == address and bytes(shown[4096:4100]) == b"here"
    with pytest.raises(hamlyn.Taken, match="another address"):
        alice.interface.allocate(4096, "sparse", address=address + 4096)
    # It is shared as any other.
    slot = alice.interface.open_slot(area, rights="all")
    alice.offer("memory", bytes(alice.interface.share(slot).ticket))
    assert attach(me).window().read(4096, 4) == b"here"
    for wrong, said in (
        (lambda: alice.interface.allocate(4096, "sparse", address=address + 1), "multiple"),
        (lambda: alice.interface.allocate(0, "sparse", address=address + 65536), "bytes"),
        (lambda: alice.interface.allocate(4096, "sparse", address=0), "address is 0"),
        (lambda: alice.interface.allocate(4096, address=address + 65536), "sparse"),
        (lambda: alice.interface.allocate(4096, "shared", address=address + 65536), "sparse"),
        (lambda: alice.interface.allocate(4096, "shared", address=address + 65536), "kind"),
    ):
        with pytest.raises(ValueError, match=said):
            wrong()
    for wrong in (-4096, 1 << 64):
        with pytest.raises(hamlyn.Invalid, match="address is an int"):
            alice.interface.allocate(4096, "sparse", address=wrong)
    with pytest.raises(TypeError):
        alice.interface.allocate(4096, "sparse", address="here")
    # Outside of what a program can have.
    with pytest.raises(hamlyn.SystemFailed):
        alice.interface.allocate(4096, "sparse", address=(1 << 64) - 4096)


def test_what_is_revoked_is_an_error(pair) -> None:
    alice, me = pair
    owner = Owner(alice)
    attached = attach(me)
    window, trusting = attached.window(), attached.window(trust_peers=True)
    view = memoryview(trusting)
    owner.area.write(0, b"before")
    assert window.read(0, 6) == b"before" == bytes(view[:6])
    memory = me.interface.open_initiator(me.interface.target(attached.ticket.ticket, WAIT))
    owner.region.revoke()
    owner.region.revoke()
    owner.area.write(0, b"after!")
    assert not window.lasts and not attached.lasts
    buffer = bytearray(8)
    for use in (
        lambda: window.read(0, 6),
        lambda: bytes(window),
        lambda: window.read_into(buffer),
        lambda: window.write(0, b"lost"),
        lambda: window.load_u64(0),
        lambda: window.store_u64(0, 1),
        lambda: window.change(0, "add", 1),
        lambda: window.compare_swap(0, 0, 1),
        lambda: memoryview(trusting),
    ):
        with pytest.raises(hamlyn.PeerGone, match="has ended"):
            use()
    with pytest.raises(hamlyn.NotFound):
        memory.window()
    # The view of before shows the memory of before, and what it writes reaches nobody.
    assert bytes(view[:6]) == b"before"
    view[:6] = b"wrong!"
    assert owner.area.read(0, 6) == b"after!"
    # Nobody can attach it again.
    with pytest.raises(hamlyn.NotFound):
        me.interface.attach(owner.region.ticket, WAIT)
    # The slot is as open as before: operations go as packets.
    alice_moves = threading.Event()

    def move() -> None:
        while not alice_moves.is_set():
            alice.poll()

    thread = threading.Thread(target=move)
    thread.start()
    try:
        assert memory.read(0, 6, WAIT) == b"after!"
    finally:
        alice_moves.set()
        thread.join()


def sharer() -> None:
    with hamlyn.open("alice", strategy="np") as alice:
        owner = Owner(alice)
        owner.area.write(0, b"mortal")
        threading.Event().wait()


def test_a_dead_owner_is_an_error() -> None:
    with hamlyn.open() as me, doomed(sharer) as owner:
        attached = attach(me)
        window = attached.window()
        array = numpy.frombuffer(attached.window(trust_peers=True), "u1")
        assert window.read(0, 6) == b"mortal"
        owner.kill()
        while me.next_event(WAIT).kind != "peer_left":
            pass
        assert not window.lasts
        with pytest.raises(hamlyn.PeerGone):
            window.read(0, 6)
        # The memory is there as long as a view of it is.
        assert array[:6].tobytes() == b"mortal"
        assert me.interface.regions_attached == 0


def test_views_of_a_window(pair) -> None:
    alice, me = pair
    owner = Owner(alice)
    attached = attach(me)
    with pytest.raises(BufferError, match="trust_peers=True"):
        memoryview(attached.window())
    window = attached.window(trust_peers=True)
    array = numpy.frombuffer(window, "f8")
    assert array.size == LENGTH // 8 and array.flags.writeable
    array[:3] = (1, 2, 3)
    own = owner.area.window(8, 16, trust_peers=True)
    assert len(own) == 16
    mine = numpy.frombuffer(own, "f8")
    assert mine.tolist() == [2, 3]
    mine[:] += 0.5
    assert array[:4].tolist() == [1, 2.5, 3.5, 0]
    with pytest.raises(BufferError, match="view of the window"):
        window.close()
    # A view holds its window.
    del window, attached
    gc.collect()
    assert array[1] == 2.5
    window = attach(me).window(trust_peers=True)
    with window, memoryview(window) as view:
        assert view[:8].tobytes() == numpy.float64(1).tobytes()
        view.release()
    assert window.closed and not window.lasts and "closed" in repr(window)
    window.close()
    with pytest.raises(hamlyn.HandleClosed, match="open another"):
        window.read(0, 1)


def test_read_only(pair) -> None:
    alice, me = pair
    owner = Owner(alice, "read")
    owner.area.write(0, b"look")
    attached = attach(me)
    window = attached.window(trust_peers=True)
    assert not window.writable and window.read(0, 4) == b"look"
    for use in (lambda: window.write(0, b"x"), lambda: window.store_u64(0, 1), lambda: window.change(0, "or", 1)):
        with pytest.raises(hamlyn.Refused, match="read only"):
            use()
    view = memoryview(window)
    assert view.readonly
    with pytest.raises(TypeError):
        view[0] = 1
    with pytest.raises((BufferError, TypeError, ValueError)):
        alice.bind_datagram("inbox").recv_into(window, 0)
    assert owner.area.read(0, 4) == b"look"


def test_what_closes_with_what(pair) -> None:
    alice, me = pair
    owner = Owner(alice)
    with attach(me) as attached:
        window = attached.window()
        assert me.interface.regions_attached == 1
    assert attached.closed and not attached.lasts and not window.lasts
    assert me.interface.regions_attached == 0
    with pytest.raises(hamlyn.PeerGone):
        window.read(0, 1)
    with pytest.raises(hamlyn.HandleClosed):
        attached.window()
    attached.close()
    # Deleting an import changes nothing; closing the manager ends it, but no view.
    window = attach(me).window(trust_peers=True)
    own = owner.area.window()
    gc.collect()
    window.write(0, b"still")
    view = memoryview(window)
    me.close()
    for use in (lambda: window.read(0, 5), lambda: memoryview(window)):
        with pytest.raises(hamlyn.HandleClosed):
            use()
    assert bytes(view[:5]) == b"still" == own.read(0, 5)
    # A slot that is closed takes its region back.
    owner.interface.close_slot(owner.slot)
    assert owner.interface.regions_shared == 0
    owner.region.revoke()
    alice.close()
    with pytest.raises(hamlyn.HandleClosed):
        owner.region.revoke()
    with pytest.raises(hamlyn.HandleClosed):
        own.read(0, 5)


def test_what_cannot_be_shared_with_all(pair) -> None:
    alice, me = pair
    interface = alice.interface
    private = interface.allocate(LENGTH)
    with pytest.raises(hamlyn.Invalid):
        interface.share(interface.open_slot(private, rights="all"))
    area = interface.allocate(LENGTH, "sparse")
    slot = interface.open_slot(area, rights="all")
    with pytest.raises(hamlyn.Invalid, match="READ alone"):
        interface.share(slot, access="read")
    with pytest.raises(hamlyn.Invalid, match="READ alone"):
        interface.share(interface.open_slot(area, rights="read"))
    with pytest.raises(hamlyn.Invalid, match="access"):
        interface.share(slot, access="all")
    with pytest.raises(ValueError, match="sparse"):
        interface.allocate(LENGTH, "exportable")
    assert len(interface.allocate(1, "sparse")) == 4096
    with pytest.raises(hamlyn.Invalid, match="another manager's"):
        me.interface.share(slot)
    with interface.share(slot) as region:
        assert len(region.ticket) == LENGTH == len(region.ticket.ticket)
        assert hamlyn.RegionTicket(bytes(region.ticket)) == region.ticket
        assert str(LENGTH) in repr(region) and "secret" not in repr(region.ticket)
        with pytest.raises(hamlyn.NotFound, match="no link"):
            me.interface.attach(region.ticket, WAIT)
        with pytest.raises(hamlyn.Invalid, match="own"):
            interface.attach(region.ticket, WAIT)
    for wrong in (b"nonsense", bytes(len(bytes(region.ticket))), bytes(slot.ticket())):
        with pytest.raises(hamlyn.Invalid):
            hamlyn.RegionTicket(wrong)
    with pytest.raises(TypeError):
        me.interface.attach(slot.ticket())


def test_bounds_of_a_window(pair) -> None:
    alice, _ = pair
    area = alice.interface.allocate(64)
    window = area.window(16, 32)
    for wrong in (
        lambda: area.window(0, 65),
        lambda: area.window((1 << 64) - 1, 2),
        lambda: window.read(0, 33),
        lambda: window.read(32, 1),
        lambda: window.read((1 << 64) - 1, 2),
        lambda: window.read_into(bytearray(33)),
        lambda: window.write(30, b"123"),
        lambda: window.load_u64(25),
        lambda: window.store_u64(25, 1),
        lambda: window.change(4, "add", 1),
    ):
        with pytest.raises(IndexError):
            wrong()
    assert area.read(0, 64) == bytes(64)
    with pytest.raises(ValueError, match='"add"'):
        window.change(0, "subtract", 1)
    assert window.compare_swap(0, 0, 5) == 0 and window.compare_swap(0, 0, 6) == 5
    assert area.load_u64(16) == 5


def test_threads_share_a_window(pair) -> None:
    alice, me = pair
    owner = Owner(alice)
    window = attach(me).window()
    rounds, threads = 5000, 4

    def count() -> None:
        for _ in range(rounds):
            window.change(64, "add", 1)

    counting = [threading.Thread(target=count) for _ in range(threads)]
    for thread in counting:
        thread.start()
    # The managers are used meanwhile.
    while any(thread.is_alive() for thread in counting):
        alice.poll()
        me.poll()
    for thread in counting:
        thread.join()
    assert owner.area.load_u64(64) == rounds * threads


def test_a_child_has_no_window(pair) -> None:
    alice, _ = pair
    window = alice.interface.allocate(64).window()
    child = os.fork()
    if child == 0:
        try:
            window.read(0, 1)
        except hamlyn.Forked:
            os._exit(17)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    assert window.read(0, 1) == b"\0"
