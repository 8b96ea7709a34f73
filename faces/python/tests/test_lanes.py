"""Lanes, shared lanes, and waits for several things at a time."""

from __future__ import annotations

import asyncio
import os

import pytest

import hamlyn

WAIT = 60


@pytest.mark.parametrize("shared", [False, True])
def test_a_lane_carries_messages_as_long_as_there_is_credit(shared: bool) -> None:
    with hamlyn.open("alice", strategy="np", shared=shared) as alice, hamlyn.open(strategy="np") as me:
        with alice.interface.open_lane(buffers=2, buffer_bytes=64) as lane:
            assert lane.manager is alice and len(lane.seed) == 60 and lane.recv(0) is None
            sender = me.interface.connect_lane(lane.seed, WAIT)
            assert (sender.buffers, sender.buffer_bytes, sender.credits) == (2, 64, 2)
            assert sender.manager is me and sender.is_free(1)
            assert sender.send(b"first", 2**32 - 1) == 0
            sender.send_to(1, bytearray(64), timeout=WAIT)
            assert sender.credits == 0 and not sender.is_free(1)
            with pytest.raises(hamlyn.TimedOut):
                sender.send(b"no room", timeout=0)
            with pytest.raises(hamlyn.TimedOut):
                sender.send_to(0, b"no room", timeout=0.01)
            with pytest.raises(hamlyn.TimedOut):
                sender.send_kept(b"no room", timeout=0.01)
            came = [lane.recv(WAIT), lane.recv(WAIT)]
            assert [(each.data, each.tag) for each in came if each] == [(b"first", 2**32 - 1), (bytes(64), 0)]
            assert came[0] is not None and came[0].sender is not None and came[0].sender.process == os.getpid()
            assert "5 bytes, tag 4294967295" in repr(came[0])
            with pytest.raises(hamlyn.TooLong):
                sender.send(bytes(65), timeout=WAIT)
            with pytest.raises(IndexError):
                sender.is_free(2)
            with pytest.raises(IndexError):
                sender.send_to(2, b"", timeout=WAIT)
            # It waits until the receiver has given buffers back.
            for number in range(100):
                sender.send(number.to_bytes(8, "little"), number, WAIT)
                message = lane.recv(WAIT)
                assert message is not None and message.tag == number and message.data == number.to_bytes(8, "little")
            me.interface.fence_link(sender.target, WAIT)


def test_ends_of_lanes() -> None:
    with hamlyn.open("alice", strategy="np") as alice, hamlyn.open(strategy="np") as me:
        lane = alice.interface.open_lane()
        with me.interface.connect_lane(lane.seed, WAIT) as sender:
            sender.send(b"last", timeout=WAIT)
        message = lane.recv(WAIT)
        assert message is not None and message.data == b"last"
        with pytest.raises(hamlyn.Closed):
            lane.recv(WAIT)
        with pytest.raises(hamlyn.HandleClosed):
            sender.send(b"")
        lane.close()
        with pytest.raises(hamlyn.HandleClosed):
            lane.recv(0)
        # For what was to be kept, no credit comes any more.
        lane = alice.interface.open_lane()
        sender = me.interface.connect_lane(lane.seed, WAIT)
        assert sender.send_kept(b"kept", 7, WAIT) == 0
        lane.close()
        # As soon as it knows; until then these fill buffers, of which none becomes free.
        with pytest.raises(hamlyn.Closed):
            for _ in range(sender.buffers):
                sender.send(b"late", timeout=WAIT)
        kept = sender.take_kept()
        assert [(each.data, each.tag, each.sender) for each in kept] == [(b"kept", 7, None)]
        assert sender.take_kept() == []
        with pytest.raises(hamlyn.Invalid):
            me.interface.connect_lane(b"no seed", WAIT)
        with pytest.raises(hamlyn.Invalid):
            me.interface.open_lane(buffers=0)


def test_a_shared_lane_takes_messages_of_several_and_refuses_beyond_their_shares() -> None:
    with hamlyn.open("alice") as alice, hamlyn.open() as first, hamlyn.open() as second:
        lane = alice.interface.open_shared_lane(buffer_bytes=64, tags=8, queue_bytes=64 * 8, peer_bytes=64 * 2)
        targets = []
        for each in (first, second):
            target = each.interface.target(lane.ticket, WAIT)
            targets.append(target)
            for tag in (5, 6, 7):
                each.interface.send_msg(target, b"hello", word=tag, timeout=WAIT)
                alice.poll()
        assert (lane.info.waiting, lane.info.waiting_bytes) == (4, 64 * 4)
        assert sum(lane.refusals.values()) == 2 and lane.too_long == 0
        came = [lane.recv(WAIT) for _ in range(4)]
        assert [(each.data, each.tag) for each in came if each] == [(b"hello", 5), (b"hello", 6)] * 2
        assert lane.recv(0) is None
        with pytest.raises(hamlyn.TooLong):
            first.interface.send_msg(targets[0], bytes(65), timeout=WAIT)
        lane.close()
        with pytest.raises(hamlyn.HandleClosed):
            lane.recv(0)
        with pytest.raises(hamlyn.Invalid):
            alice.interface.open_shared_lane(tags=4097)


def test_a_wait_looks_at_several_things() -> None:
    with hamlyn.open("alice") as alice, hamlyn.open(strategy="np") as me:
        below = alice.interface
        queue, completions, lane = below.open_queue(4), below.open_completions(4), below.open_shared_lane()
        slot = below.open_slot(below.allocate(4096), queue=queue)
        assert below.await_any([queue, completions, lane], 0.01) is None
        target = me.interface.target(lane.ticket, WAIT)
        me.interface.send_msg(target, b"to the lane", timeout=WAIT)
        assert below.await_any([queue, completions, lane], WAIT) == 2
        place = me.interface.target(slot.ticket(), WAIT)
        me.interface.send_msg(place, b"to the slot", timeout=WAIT)
        assert lane.recv(0) is not None and below.await_any([queue, completions, lane], WAIT) == 0
        assert below.rcv(queue, 0) is not None
        peer = alice.next_event(WAIT)
        assert peer is not None and peer.peer is not None
        completions.track_fence(peer.peer, 1)
        assert below.await_any([queue, completions, lane], WAIT) == 1
        with pytest.raises(ValueError, match="twice"):
            below.await_any([queue, queue], 0)
        with pytest.raises(ValueError, match="no sources"):
            below.await_any([], 0)
        with pytest.raises(hamlyn.Invalid, match="another manager's"):
            me.interface.await_any([queue], 0)
        with pytest.raises(TypeError):
            below.await_any([alice], 0)  # type: ignore[list-item]


def test_a_wait_ends_within_the_span_that_was_asked_for() -> None:
    with hamlyn.open() as me:
        me.wait(0)
        me.interface.look_within(0.01)
        # It would last for ever otherwise.
        me.wait(None)


def test_tasks_await_lanes() -> None:
    async def receives(lane: hamlyn.Lane) -> list[bytes]:
        return [message.data async for message in lane]

    async def sends(sender: hamlyn.LaneSender) -> None:
        for number in range(50):
            await sender.send_async(str(number).encode(), number)
        sender.close()

    async def both() -> None:
        with hamlyn.open("alice") as alice, hamlyn.open() as me:
            lane, shared = alice.interface.open_lane(buffers=4), alice.interface.open_shared_lane()
            sender = await me.interface.connect_lane_async(lane.seed, WAIT)
            came, _ = await asyncio.gather(receives(lane), sends(sender))
            assert came == [str(number).encode() for number in range(50)]
            target = await me.interface.target_async(shared.ticket, WAIT)
            me.interface.send_msg(target, b"to all", word=3, timeout=WAIT)
            message = await shared.recv_async()
            assert (message.data, message.tag) == (b"to all", 3)

    asyncio.run(asyncio.wait_for(both(), WAIT))
