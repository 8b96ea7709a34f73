"""Areas that change hands: no view shows what the interface may write."""

from __future__ import annotations

import gc
import os
import threading

import numpy
import pytest

import hamlyn

WAIT = 60


@pytest.fixture
def opened():
    """Four pieces of 64 bytes under a slot, and the way there."""
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        area, reader = alice.interface.allocate_handover(4, 64)
        queue = alice.interface.open_queue(16)
        slot = alice.interface.open_slot(area, queue=queue, entries=4, mode="paranoid_one_shot")

        def send(piece: int, data: bytes) -> hamlyn.Target:
            """One message into a piece that is open."""
            target = me.interface.target(alice.interface.arm(slot, piece, 64 * piece, 64), WAIT)
            me.interface.send_msg(target, data, timeout=WAIT)
            assert alice.interface.rcv(queue, WAIT).metadata_index == piece
            return target

        yield alice, me, area, reader, slot, send


def test_pieces_change_hands(opened) -> None:
    alice, me, area, reader, slot, send = opened
    assert (reader.pieces, reader.piece_bytes, len(area)) == (4, 64, 256)
    # All are the program's at first.
    assert [reader.is_held(piece) for piece in range(4)] == [True] * 4
    assert bytes(reader.view(0, 256)) == bytes(256)
    reader.open(range(0, 2))
    assert [reader.is_held(piece) for piece in range(4)] == [False, False, True, True]
    for open_still in (lambda: reader.view(0, 1), lambda: reader.view(100, 60), lambda: reader.view(0, 256)):
        with pytest.raises(hamlyn.Released, match="open to the interface"):
            open_still()
    target = send(0, b"first")
    assert reader.is_held(0) and not reader.is_held(1)
    view = reader.view(0, 5)
    assert bytes(view) == b"first" and len(view) == 5 and not view.released
    # Nobody with a ticket writes what is the program's, also if its entry is armed.
    me.interface.send_msg(me.interface.target(alice.interface.arm(slot, 2, 128, 64), WAIT), b"too early", timeout=WAIT)
    me.interface.send_msg(target, b"too late", timeout=WAIT)
    me.flush(WAIT)
    while sum(alice.interface.slot_info(slot).refusals.values()) < 2:
        alice.poll()
    assert bytes(view) == b"first" and bytes(reader.view(128, 128)) == bytes(128)


def test_a_view_of_what_was_opened_again_raises(opened) -> None:
    _, _, _, reader, _, send = opened
    reader.open_one(1)
    send(1, b"first")
    view, other = reader.view(64, 5), reader.view(0, 64)
    reader.open_one(1)
    assert view.released and not other.released
    for stale in (lambda: bytes(view), lambda: memoryview(view), lambda: numpy.frombuffer(view, "u1")):
        with pytest.raises(hamlyn.Released, match="ask the reader for another view"):
            stale()
    send(1, b"other")
    # Also when the piece is the program's again, with another message.
    with pytest.raises(hamlyn.Released):
        bytes(view)
    assert bytes(reader.view(64, 5)) == b"other" and bytes(other) == bytes(64)


def test_pieces_with_views_are_not_opened(opened) -> None:
    _, _, _, reader, _, send = opened
    reader.open_one(2)
    send(2, b"first")
    whole = reader.view(64, 128)
    array = numpy.frombuffer(whole, "u1")
    for touched in (range(2, 3), range(0, 2), range(0, 4)):
        with pytest.raises(BufferError, match="view of the piece"):
            reader.open(touched)
    # None of them was opened.
    assert all(reader.is_held(piece) for piece in range(4))
    reader.open(range(3, 4))
    assert bytes(array[64:69]) == b"first"
    with pytest.raises(ValueError):
        array[0] = 1
    part = array[64:70]
    del array, whole
    gc.collect()
    with pytest.raises(BufferError):
        reader.open_one(2)
    assert bytes(part[:5]) == b"first"
    del part
    gc.collect()
    reader.open(range(0, 4))


def test_views_outlive_all_else() -> None:
    with hamlyn.open("alice") as alice:
        area, reader = alice.interface.allocate_handover(2, 32)
        slot = alice.interface.open_slot(area, entries=1, mode="paranoid_one_shot")
        reader.open_one(0)
        target = alice.interface.target(alice.interface.arm(slot, 0, 0, 32), WAIT)
        alice.interface.send_msg(target, b"kept", timeout=WAIT)
        alice.fence(WAIT)
        view = memoryview(reader.view(0, 4))
        del reader, area
    del slot, target, alice
    gc.collect()
    assert view == b"kept"


def test_one_slot_writes(opened) -> None:
    alice, me, area, reader, _, _ = opened
    with pytest.raises(hamlyn.Invalid, match="allocate another"):
        alice.interface.open_slot(area)
    # The area itself reads, and does not write what is in the program's hands, or has a slot.
    assert area.read(0, 256) == bytes(256)
    for wrong in (lambda: area.write(0, b"x"), lambda: area.read(250, 7), lambda: area.window()):
        with pytest.raises(IndexError):
            wrong()
    fresh, pieces = me.interface.allocate_handover(2, 32)
    with pytest.raises(IndexError, match="open it first"):
        fresh.write(0, b"x")
    pieces.open_one(0)
    fresh.write(0, b"the program's own")
    with pytest.raises(hamlyn.Invalid, match="another manager's"):
        alice.interface.open_slot(fresh)
    # That did not take the area.
    me.interface.open_slot(fresh)


def test_wrong_arguments(opened) -> None:
    alice, _, _, reader, _, _ = opened
    for wrong in (
        lambda: reader.open(range(3, 5)),
        lambda: reader.open(range(-1, 2)),
        lambda: reader.open_one(4),
        lambda: reader.open_one(2**32 - 1),
        lambda: reader.is_held(4),
        lambda: reader.view(0, 257),
        lambda: reader.view(256, 1),
        lambda: reader.view(2**64 - 1, 2),
    ):
        with pytest.raises(IndexError):
            wrong()
    for wrong in (lambda: reader.open(range(0, 4, 2)), lambda: reader.open([0, 1]), lambda: reader.open(0), lambda: reader.view("0", 1), lambda: hamlyn.HandoverReader()):
        with pytest.raises(TypeError):
            wrong()
    for wrong in (lambda: alice.interface.allocate_handover(4, 100), lambda: alice.interface.allocate_handover(4, 8)):
        with pytest.raises(hamlyn.Error):
            wrong()
    reader.open(range(2, 2))
    reader.open(range(4, 2))
    assert all(reader.is_held(piece) for piece in range(4))
    assert bytes(reader.view(256, 0)) == b"" == memoryview(reader.view(10, 0))
    with pytest.raises(hamlyn.SystemFailed):
        alice.interface.allocate_handover(2**32 - 1, 1 << 31)


def test_other_threads_and_children(opened) -> None:
    alice, _, _, reader, _, _ = opened
    queue = alice.interface.open_queue(8)
    view = reader.view(0, 64)
    refused, seen = [], []
    over = threading.Event()

    def receive() -> None:
        # Until the other thread has met a call of this one.
        while not over.is_set():
            try:
                alice.interface.rcv(queue, 0.1)
            except hamlyn.InUse:
                pass

    def meddle() -> None:
        try:
            while not refused:
                try:
                    reader.open_one(3)
                except hamlyn.InUse as error:
                    refused.append(error)
            # A view is for any thread at any time.
            seen.append(bytes(view))
        finally:
            over.set()

    threads = [threading.Thread(target=target) for target in (receive, meddle)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused and seen == [bytes(64)]
    child = os.fork()
    if child == 0:
        try:
            bytes(view)
        except hamlyn.Forked:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
