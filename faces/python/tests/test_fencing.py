"""Fences of one link: they wait for what was sent over it, tell what was refused there, and nothing of other links."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Iterator

import pytest

import hamlyn

WAIT = 60


class Receiver:
    """A manager with a slot, and a target of it in another manager's hands."""

    def __init__(self, manager: hamlyn.Manager, me: hamlyn.Manager) -> None:
        self.manager, self.interface = manager, manager.interface
        self.area, self.queue = self.interface.allocate(64), self.interface.open_queue(64)
        self.slot = self.interface.open_slot(self.area, queue=self.queue)
        self.target = me.interface.target(self.slot.ticket(), WAIT)
        self.peer = me.interface.peer_of(self.target)


@contextlib.contextmanager
def opened(strategy: str = "np", shared: bool = False) -> Iterator[tuple[hamlyn.Manager, Receiver, Receiver]]:
    with hamlyn.open(strategy=strategy) as one, hamlyn.open(strategy=strategy) as other, hamlyn.open(shared=shared) as me:
        yield me, Receiver(one, me), Receiver(other, me)


def test_a_fence_of_each_link() -> None:
    with opened() as (me, one, other):
        assert one.peer is not None and other.peer is not None
        me.interface.send_msg(one.target, b"in its place", timeout=WAIT)
        me.interface.fence_link(one.target, WAIT)
        assert one.area.read(0, 12) == b"in its place"
        other.interface.revoke_slot(other.slot)
        me.interface.send_msg(other.target, b"refused", timeout=WAIT)
        me.interface.send_msg(other.target, b"refused", timeout=WAIT)
        # Another link tells nothing of it.
        me.interface.fence_link(one.peer, WAIT)
        with pytest.raises(hamlyn.Refused, match="^2 of"):
            me.interface.fence_link(other.peer, WAIT)
        # Told once.
        me.interface.fence_link(other.target, timeout=WAIT)
        me.fence(WAIT)


def test_a_fence_of_a_link_is_awaited() -> None:
    async def main() -> None:
        with opened() as (me, one, other):
            me.interface.send_msg(one.target, b"in its place", timeout=WAIT)
            await me.interface.fence_link_async(one.target)
            assert one.area.read(0, 12) == b"in its place"
            other.interface.revoke_slot(other.slot)
            me.interface.send_msg(other.target, b"refused", timeout=WAIT)
            await asyncio.gather(*(me.interface.fence_link_async(one.peer) for _ in range(5)))
            with pytest.raises(hamlyn.Refused, match="^1 of"):
                await me.interface.fence_link_async(other.peer)
            await me.interface.fence_link_async(other.target)

    asyncio.run(main())


def test_a_fence_that_is_given_up_is_told_of_later() -> None:
    async def main() -> None:
        # The peers answer in their calls.
        with opened("proc") as (me, one, other):
            one.interface.revoke_slot(one.slot)
            me.interface.send_msg(one.target, b"refused", timeout=WAIT)
            with pytest.raises(hamlyn.TimedOut):
                me.interface.fence_link(one.target, 0.05)
            with pytest.raises(hamlyn.TimedOut):
                me.interface.fence_link(one.peer, 0)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(me.interface.fence_link_async(one.target), 0.05)
            fencing = asyncio.ensure_future(me.interface.fence_link_async(one.target))
            while not fencing.done():
                one.manager.poll()
                other.manager.poll()
                await asyncio.sleep(0)
            with pytest.raises(hamlyn.Refused):
                await fencing

    asyncio.run(main())


def test_other_threads_use_a_shared_manager_while_a_link_is_fenced() -> None:
    with opened("proc", shared=True) as (me, one, other):
        me.interface.send_msg(one.target, b"hello", timeout=WAIT)
        fenced = threading.Event()

        def fence(handle: hamlyn.Manager) -> None:
            with handle:
                handle.interface.fence_link(one.target, WAIT)
            fenced.set()

        fencing = threading.Thread(target=fence, args=(me.share(),))
        fencing.start()
        # Nobody answers as long as this thread does not have the peer do so.
        for number in range(200):
            me.interface.send_msg(other.target, b"%d" % number, word=number, timeout=WAIT)
            assert other.interface.rcv(other.queue, WAIT).word == number
        assert not fenced.is_set()
        while not fenced.is_set():
            one.manager.poll()
        fencing.join()


def test_links_that_are_not_there() -> None:
    async def main() -> None:
        with opened() as (me, one, other):
            peer, target = other.peer, other.target
            other.manager.close()
            while me.next_event(WAIT).kind != "peer_left":
                pass
            # It had taken all that was sent to it.
            for link in (peer, target):
                me.interface.fence_link(link, WAIT)
                await me.interface.fence_link_async(link)
                with pytest.raises(hamlyn.PeerGone):
                    me.interface.send_msg(target, b"lost", timeout=WAIT)
            me.interface.fence_link(one.peer, WAIT)
            # What another manager calls by the same number.
            with hamlyn.open() as third, pytest.raises(hamlyn.PeerGone):
                third.interface.fence_link(one.target, WAIT)
            for wrong in (None, 5, "alice", one.slot.ticket()):
                with pytest.raises(TypeError):
                    me.interface.fence_link(wrong)  # type: ignore[arg-type]
                with pytest.raises(TypeError):
                    me.interface.fence_link_async(wrong)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="seconds"):
                me.interface.fence_link(one.peer, -1)
            me.close()
            with pytest.raises(hamlyn.HandleClosed):
                me.interface.fence_link(one.peer)
            with pytest.raises(hamlyn.HandleClosed):
                me.interface.fence_link_async(one.peer)

    asyncio.run(main())
