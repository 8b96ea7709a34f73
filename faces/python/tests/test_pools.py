"""Pools: memory that one program writes in place, and others read."""

from __future__ import annotations

import gc
import os

import numpy
import pytest
from conftest import running

import hamlyn

WAIT = 60


def reader(namespace: str) -> None:
    with hamlyn.open("reader") as me:
        ticket = hamlyn.Ticket(me.ask("owner", "ticket", WAIT))
        me.interface.target(ticket, WAIT)
        number, offset = (int(text) for text in me.ask("owner", "shown", WAIT).split())
        pool = me.interface.fetch_pool(ticket, number, WAIT)
        assert pool.read(offset, 5) == b"frame"
        buffer = bytearray(3)
        pool.read_into(buffer, offset + 1)
        assert buffer == b"ram"
        for wrong in (lambda: pool.read(len(pool), 1), lambda: pool.read(1 << 62, 1), lambda: pool.read_into(buffer, len(pool) - 2)):
            with pytest.raises(IndexError):
                wrong()
        with pytest.raises(BufferError, match="trust_peers"):
            memoryview(pool)
        # Once.
        with pytest.raises(hamlyn.NotFound):
            me.interface.fetch_pool(ticket, number, 1)
        again, hidden = (int(text) for text in me.ask("owner", "again", WAIT).split())
        with pytest.raises(hamlyn.NotFound):
            me.interface.fetch_pool(ticket, hidden, 1)
        trusting = me.interface.fetch_pool(me.interface.peer_of(me.interface.target(ticket, WAIT)), again, WAIT, trust_peers=True)
        array = numpy.frombuffer(trusting, "u1")
        assert bytes(array[offset : offset + 5]) == b"frame"
        with pytest.raises(ValueError):
            array[offset] = 1
        me.offer("done", b"one")
        me.ask("owner", "changed", WAIT)
        # In place.
        assert bytes(array[offset : offset + 5]) == b"other"
        del trusting
        gc.collect()
        assert bytes(array[offset : offset + 5]) == b"other"
        me.offer("end", b"two")
        me.flush(WAIT)
        while me.next_event(WAIT).kind != "peer_left":
            pass
        # It stays mapped when its owner is gone.
        assert bytes(array[offset : offset + 5]) == b"other" and pool.read(offset, 5) == b"other"


def test_a_pool_between_processes(namespace: str) -> None:
    with running(reader, namespace):
        with hamlyn.open("owner", strategy="np") as owner:
            inbox = owner.bind_datagram("inbox")
            owner.offer("ticket", bytes(inbox.ticket))
            peer = owner.next_event(WAIT).peer
            pool = hamlyn.Pool(100, 8)
            pool.take(1)
            chunk = pool.take(5)
            with memoryview(chunk) as view:
                view[:] = b"frame"
            number = owner.interface.show_pool(pool, peer)
            owner.offer("shown", b"%d %d" % (number, chunk.offset))
            again, hidden = owner.interface.show_pool(pool, peer), owner.interface.show_pool(pool, peer)
            owner.interface.hide_pool(hidden)
            owner.interface.hide_pool(12345)
            owner.offer("again", b"%d %d" % (again, hidden))
            owner.ask("reader", "done", WAIT)
            numpy.frombuffer(chunk, "u1")[:] = list(b"other")
            owner.offer("changed", b"yes")
            owner.ask("reader", "end", WAIT)


def test_chunks() -> None:
    pool = hamlyn.Pool(chunk_bytes=100, count=3)
    assert (pool.chunk_bytes, pool.count, pool.free) == (100, 3, 3) and len(pool) >= 300
    chunks = [pool.take(100), pool.take(0), pool.take(7)]
    assert pool.take(1) is None and pool.free == 0
    assert len({chunk.index for chunk in chunks}) == 3 == len({chunk.offset for chunk in chunks})
    assert [len(chunk) for chunk in chunks] == [100, 0, 7]
    assert memoryview(chunks[1]) == b""
    array = numpy.frombuffer(chunks[0], "u1")
    array[:] = 5
    with pytest.raises(BufferError, match="view of the chunk"):
        pool.give_back(chunks[0])
    assert not chunks[0].released
    del array
    pool.give_back(chunks[0])
    assert chunks[0].released and pool.free == 1
    for late in (lambda: memoryview(chunks[0]), lambda: pool.give_back(chunks[0])):
        with pytest.raises(hamlyn.Released):
            late()
    again = pool.take(100)
    assert again.index == chunks[0].index
    # One that is deleted is never given out again.
    index = again.index
    del again
    gc.collect()
    assert pool.free == 0
    pool.give_back(chunks[2])
    assert pool.take(1).index != index
    view = memoryview(chunks[1])
    del chunks, pool
    gc.collect()
    assert view.nbytes == 0


def test_wrong_arguments() -> None:
    for wrong in (lambda: hamlyn.Pool(0, 1), lambda: hamlyn.Pool(1, 0), lambda: hamlyn.Pool(1 << 31, 16)):
        with pytest.raises(hamlyn.Invalid, match="no pool"):
            wrong()
    pool, other = hamlyn.Pool(8, 2), hamlyn.Pool(8, 2)
    with pytest.raises(hamlyn.TooLong, match="longer ones"):
        pool.take(9)
    with pytest.raises(hamlyn.Invalid, match="another pool's"):
        other.give_back(pool.take(1))
    for wrong in (lambda: pool.give_back(5), lambda: pool.take("1"), lambda: hamlyn.Pool("1", 2), lambda: hamlyn.SharedPool(), lambda: hamlyn.Chunk()):
        with pytest.raises(TypeError):
            wrong()
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        inbox = alice.bind_datagram("inbox")
        target = me.interface.target(inbox.ticket, WAIT)
        peer = me.interface.peer_of(target)
        own = me.interface.peer_of(me.interface.target(me.open_datagram().ticket, WAIT))
        with pytest.raises(hamlyn.Invalid):
            me.interface.show_pool(pool, own)
        for wrong in (lambda: me.interface.show_pool(peer, pool), lambda: me.interface.fetch_pool(5, 1, 0), lambda: me.interface.fetch_pool(peer, "1")):
            with pytest.raises(TypeError):
                wrong()
        number = me.interface.show_pool(pool, peer)
        with pytest.raises(hamlyn.NotFound):
            alice.interface.fetch_pool(alice.next_event(WAIT).peer, number + 1, 1)
        alice.close()
        with pytest.raises(hamlyn.HandleClosed):
            alice.interface.show_pool(pool, peer)
        while me.next_event(WAIT).kind != "peer_left":
            pass
        with pytest.raises(hamlyn.PeerGone):
            me.interface.show_pool(pool, peer)


def test_a_child_has_no_pool() -> None:
    pool = hamlyn.Pool(8, 2)
    chunk = pool.take(8)
    child = os.fork()
    if child == 0:
        refused = 0
        for wrong in (lambda: memoryview(chunk), lambda: pool.take(1), lambda: pool.give_back(chunk), lambda: pool.free):
            try:
                wrong()
            except hamlyn.Forked:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
