"""Completion queues: the ends of sends, fences and operations, each with its own number, and packets that came back."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import struct
from typing import Any, Iterator

import pytest

import hamlyn

WAIT = 60


class World:
    """An owner of memory, and a manager that sends to it and has access to it."""

    def __init__(self, alice: hamlyn.Manager, me: hamlyn.Manager, landing_bytes: int) -> None:
        self.alice, self.me = alice, me
        self.area = alice.interface.allocate(1 << 16)
        self.slot = alice.interface.open_slot(self.area, rights="all")
        self.target = me.interface.target(self.slot.ticket(), WAIT)
        self.memory = me.interface.open_initiator(self.target, landing_bytes)

    def next(self, queue: hamlyn.CompletionQueue) -> hamlyn.Completion:
        found = queue.next(WAIT)
        assert found is not None
        return found

    def ends(self, queue: hamlyn.CompletionQueue, count: int) -> dict[int, Any]:
        """Values by contexts; none has failed."""
        completions = [self.next(queue) for _ in range(count)]
        assert [each.error for each in completions] == [None] * count
        assert not any(each.is_returned for each in completions)
        assert queue.next(0) is None
        return {each.context: each.value for each in completions}


@contextlib.contextmanager
def opened(strategy: str = "np", landing_bytes: int = 65536, shared: bool = False) -> Iterator[World]:
    with hamlyn.open("alice", strategy=strategy) as alice, hamlyn.open(shared=shared) as me:
        yield World(alice, me, landing_bytes)


@pytest.mark.parametrize("shared", [False, True])
def test_everything_ends_with_its_own_number(shared: bool) -> None:
    with opened(shared=shared) as world:
        world.area.write(0, bytes(range(64)))
        world.area.store_u64(1024, 100)
        queue = world.me.interface.open_completions(16)
        assert queue.places == 16 and queue.manager is world.me
        sent = world.me.interface.send_msg(world.target, b"in its place", 2048, timeout=WAIT)
        queue.track_send(sent, 1)
        queue.track_fence(world.target, 2)
        queue.track_operation(world.memory.begin_atomic(1024, "add", 5, timeout=WAIT), 3)
        queue.track_operation(world.memory.begin_read(0, 8, WAIT), 4)
        queue.track_operation(world.memory.begin_put(4096, b"put", WAIT), 2**64 - 1)
        queue.track_operation(world.memory.begin_atomic(1032, "float_add", 1.5, timeout=WAIT), 6)
        assert world.ends(queue, 6) == {1: None, 2: None, 3: 100, 4: bytes(range(8)), 2**64 - 1: None, 6: 0.0}
        assert world.area.read(2048, 12) == b"in its place" and world.area.read(4096, 3) == b"put"
        assert world.memory.outstanding == 0
        queue.track_operation(world.memory.begin_read_word(1024, WAIT), 7)
        word = world.next(queue)
        assert (word.context, word.word, word.value, word.error) == (7, 105, 105, None)
        assert repr(word) == "<hamlyn.Completion 7, word 105>"


def test_contexts_may_be_equal() -> None:
    with opened() as world:
        queue = world.me.interface.open_completions(8)
        for offset in range(0, 32, 8):
            world.area.store_u64(offset, offset)
            queue.track_operation(world.memory.begin_read_word(offset, WAIT), 5)
        found = [world.next(queue) for _ in range(4)]
        assert [each.context for each in found] == [5] * 4
        assert sorted(each.word for each in found) == [0, 8, 16, 24]


def test_an_operation_that_was_given_to_a_queue_cannot_be_finished() -> None:
    with opened() as world:
        queue = world.me.interface.open_completions(2)
        begun = world.memory.begin_read_word(0, WAIT)
        queue.track_operation(begun, 1)
        for again in (
            lambda: begun.finish(WAIT),
            lambda: queue.track_operation(begun, 2),
            lambda: begun.count(hamlyn.CompletionCounter()),
            lambda: asyncio.run(_awaited(begun)),
        ):
            with pytest.raises(hamlyn.Released, match="a completion queue"):
                again()
        world.memory.finish_all(WAIT)
        assert world.ends(queue, 1) == {1: 0}
        finished = world.memory.begin_read_word(0, WAIT)
        assert finished.finish(WAIT) == 0
        with pytest.raises(hamlyn.Released, match="told its result"):
            queue.track_operation(finished, 3)


async def _awaited(operation: hamlyn.Operation[int]) -> int:
    return await operation


def test_a_queue_without_a_free_place_refuses() -> None:
    with opened() as world:
        queue = world.me.interface.open_completions(1)
        queue.track_fence(world.target, 1)
        sent = world.me.interface.send_msg(world.target, b"sent all the same", timeout=WAIT)
        begun = world.memory.begin_read_word(0, WAIT)
        for refused in (
            lambda: queue.track_send(sent, 2),
            lambda: queue.track_fence(world.target, 2),
            lambda: queue.track_operation(begun, 2),
        ):
            with pytest.raises(hamlyn.Invalid, match="all 1 places"):
                refused()
        # It was not given to the queue.
        assert isinstance(begun.finish(WAIT), int)
        assert world.ends(queue, 1) == {1: None}
        queue.track_send(sent, 2)
        assert world.ends(queue, 1) == {2: None}
        for places in (0, 65537):
            with pytest.raises(hamlyn.Invalid, match="65,536"):
                world.me.interface.open_completions(places)


def test_what_fails_has_the_exception_of_the_call_that_waits() -> None:
    with opened() as world:
        assert world.me.interface.link_context(world.target) == 0
        world.me.interface.set_link_context(world.target, 99)
        assert world.me.interface.link_context(world.target) == 99
        queue = world.me.interface.open_completions(4)
        queue.track_refusals()
        world.alice.interface.revoke_slot(world.slot)
        world.me.interface.send_msg(world.target, b"refused", timeout=WAIT)
        queue.track_fence(world.target, 1)
        found = {each.context: each for each in (world.next(queue), world.next(queue))}
        assert found[99].is_returned and not found[1].is_returned
        for completion, text in ((found[1], "^1 of the packets"), (found[99], "came back")):
            assert isinstance(completion.error, hamlyn.Refused) and completion.value is None
            with pytest.raises(hamlyn.Refused, match=text):
                raise completion.error
            assert "revoked" in repr(completion)
        queue.track_operation(world.memory.begin_read_word(0, WAIT), 2)
        queue.track_operation(world.memory.begin_read(0, 65536, WAIT), 3)
        operations = [each for each in (world.next(queue) for _ in range(2)) if not each.is_returned]
        for completion in operations:
            assert isinstance(completion.error, hamlyn.Refused) and completion.word == 0


def test_a_peer_that_is_gone() -> None:
    with opened("proc") as world:
        queue = world.me.interface.open_completions(4)
        world.me.interface.send_msg(world.target, b"never taken", timeout=WAIT)
        queue.track_fence(world.target, 1)
        queue.track_operation(world.memory.begin_read(0, 8, WAIT), 2)
        assert queue.next(0.01) is None
        world.alice.close()
        found = {each.context: each for each in (world.next(queue), world.next(queue))}
        assert sorted(found) == [1, 2]
        for completion in found.values():
            assert isinstance(completion.error, hamlyn.PeerGone)
        with pytest.raises(hamlyn.PeerGone):
            world.me.interface.send_msg(world.target, b"x", timeout=WAIT)


def test_the_landing_memory_of_reads_is_used_again() -> None:
    with opened(landing_bytes=64) as world:
        world.area.write(0, b"A" * 64 + b"B" * 64)
        queue = world.me.interface.open_completions(8)
        for turn in range(200):
            for context, offset in ((0, 0), (1, 64)):
                queue.track_operation(world.memory.begin_read(offset, 32, WAIT), context)
            assert world.ends(queue, 2) == {0: b"A" * 32, 1: b"B" * 32}
        # One that is complete and not fetched keeps its part of the memory.
        queue.track_operation(world.memory.begin_read(0, 48, WAIT), 2)
        queue.track_fence(world.target, 3)
        with pytest.raises(hamlyn.Invalid, match="memory for landing"):
            world.memory.begin_read(64, 32, WAIT)
        # A queue that is closed gives it back.
        queue.close()
        for _ in range(3):
            assert world.memory.read(64, 64, WAIT) == b"B" * 64


def test_what_is_deleted_goes_on() -> None:
    with opened() as world:
        queue = world.me.interface.open_completions(8)
        memory = world.me.interface.open_initiator(world.target, 64)
        world.area.write(0, bytes(range(8)))
        queue.track_operation(memory.begin_read(0, 8, WAIT), 1)
        del memory
        gc.collect()
        assert world.ends(queue, 1) == {1: bytes(range(8))}
        for _ in range(5000):
            # More than an interface may have at a time.
            world.me.interface.open_completions(1).track_fence(world.target, 1)
        del queue
        gc.collect()
        world.me.fence(WAIT)


def test_closing() -> None:
    with opened() as world:
        with world.me.interface.open_completions(2) as queue:
            queue.track_fence(world.target, 1)
        queue.close()
        for call in (
            lambda: queue.next(0),
            lambda: queue.track_fence(world.target, 1),
            lambda: queue.track_refusals(),
            lambda: queue.places,
        ):
            with pytest.raises((hamlyn.HandleClosed, hamlyn.Invalid), match="closed"):
                call()
        other = world.me.interface.open_completions(2)
        world.me.close()
        with pytest.raises(hamlyn.HandleClosed):
            other.next(0)


def test_objects_of_two_managers_are_refused() -> None:
    with opened() as world, hamlyn.open() as third:
        queue = third.interface.open_completions(4)
        sent = world.me.interface.send_msg(world.target, b"x", timeout=WAIT)
        with pytest.raises(hamlyn.Invalid, match="another manager"):
            queue.track_send(sent, 1)
        begun = world.memory.begin_read_word(0, WAIT)
        with pytest.raises(hamlyn.Invalid, match="another manager"):
            queue.track_operation(begun, 1)
        with pytest.raises(hamlyn.PeerGone, match="no such link"):
            queue.track_fence(world.target, 1)
        with pytest.raises(hamlyn.PeerGone, match="no such link"):
            third.interface.set_link_context(world.target, 1)
        assert isinstance(begun.finish(WAIT), int) and queue.next(0) is None
        with pytest.raises(TypeError):
            queue.track_fence(7, 1)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            queue.track_operation(sent, 1)  # type: ignore[arg-type]


def test_completions_are_awaited() -> None:
    async def main() -> None:
        with opened() as world:
            queue = world.me.interface.open_completions(64)
            reading = asyncio.create_task(_next(queue))
            await asyncio.sleep(0.01)
            assert not reading.done()
            queue.track_fence(world.target, 7)
            assert (await reading).context == 7
            for context in range(64):
                world.area.store_u64(8 * context, context)
                queue.track_operation(world.memory.begin_read_word(8 * context, WAIT), context)
            words = {}
            async for completion in queue:
                assert completion.error is None
                words[completion.context] = completion.word
                if len(words) == 64:
                    break
            assert words == {context: context for context in range(64)}

    asyncio.run(asyncio.wait_for(main(), WAIT))


async def _next(queue: hamlyn.CompletionQueue) -> hamlyn.Completion:
    return await queue.next_async()


def test_a_child_is_refused() -> None:
    with opened() as world:
        queue = world.me.interface.open_completions(4)
        begun = world.memory.begin_read_word(0, WAIT)
        queue.track_fence(world.target, 1)
        child = os.fork()
        if child == 0:
            status = 1
            with contextlib.suppress(BaseException):
                refused = 0
                for call in (
                    lambda: queue.next(0),
                    lambda: queue.track_fence(world.target, 1),
                    lambda: queue.track_operation(begun, 2),
                    lambda: queue.track_refusals(),
                    lambda: world.me.interface.open_completions(1),
                    lambda: world.me.interface.set_link_context(world.target, 1),
                    lambda: queue.close(),
                ):
                    try:
                        call()
                    except hamlyn.Forked:
                        refused += 1
                del queue
                status = 0 if refused == 7 else 2
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        queue.track_operation(begun, 2)
        ends = world.ends(queue, 2)
        assert sorted(ends) == [1, 2] and struct.pack("<Q", ends[2]) == world.area.read(0, 8)
