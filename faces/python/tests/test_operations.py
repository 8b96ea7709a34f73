"""One-sided operations that are begun, and finished by themselves."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import struct
import threading
from typing import Iterator

import numpy
import pytest

import hamlyn

WAIT = 60


@contextlib.contextmanager
def opened(strategy: str = "proc", landing_bytes: int = 65536, rights: str = "all") -> Iterator[tuple]:
    """An owner, its memory, and access to it by another manager."""
    with hamlyn.open("alice", strategy=strategy) as alice, hamlyn.open() as me:
        area = alice.interface.allocate(1 << 16)
        slot = alice.interface.open_slot(area, rights=rights)
        target = me.interface.target(slot.ticket(), WAIT)
        yield alice, me, area, me.interface.open_initiator(target, landing_bytes)


@contextlib.contextmanager
def polled(manager: hamlyn.Manager) -> Iterator[None]:
    """Another thread has the manager answer."""
    stop = threading.Event()

    def poll() -> None:
        while not stop.is_set():
            manager.poll()

    polling = threading.Thread(target=poll)
    polling.start()
    try:
        yield
    finally:
        stop.set()
        polling.join()


def test_many_at_a_time() -> None:
    with opened("np") as (_, _, area, memory):
        area.write(0, bytes(range(256)))
        reads = [memory.begin_read(offset, 4, WAIT) for offset in range(0, 64, 4)]
        put = memory.begin_put(1000, b"some bytes", WAIT)
        added = memory.begin_atomic(2048, "add", 5, timeout=WAIT)
        assert added.finish(WAIT) == 0
        swapped = memory.begin_atomic(2048, "compare_swap", 9, expected=5, timeout=WAIT)
        word = memory.begin_read_word(0, WAIT)
        floated = memory.begin_atomic(2056, "float_add", 1.5, timeout=WAIT)
        # In whatever order.
        assert floated.finish(WAIT) == 0.0
        assert word.finish(WAIT) == struct.unpack("<Q", bytes(range(8)))[0]
        assert swapped.finish(WAIT) == 5
        assert put.finish(WAIT) is None
        assert memory.outstanding == len(reads)
        for offset, read in reversed(list(zip(range(0, 64, 4), reads))):
            assert read.finish(WAIT) == bytes(range(offset, offset + 4))
        assert memory.outstanding == 0
        assert area.read(1000, 10) == b"some bytes"
        assert struct.unpack("<Qd", area.read(2048, 16)) == (9, 1.5)
        with pytest.raises(hamlyn.Released, match="told its result"):
            put.finish(0)


def test_words_of_32_bits() -> None:
    with opened("np") as (_, _, area, memory):
        # What lies beside the word stays as it is.
        area.write(0, b"\xee" * 4 + bytes(4) + b"\xee" * 4)
        assert memory.change(4, "add", 5, WAIT, bits=32) == 0
        assert memory.change(4, "add", -7, WAIT, bits=32) == 5
        assert memory.change(4, "max", 3, WAIT, bits=32) == (1 << 32) - 2
        assert memory.change(4, "min", -1, WAIT, bits=32) == 3
        assert memory.change(4, "swap", 0b1100, WAIT, bits=32) == (1 << 32) - 1
        assert memory.change(4, "and", 0b0110, WAIT, bits=32) == 0b1100
        assert memory.change(4, "or", 0b0001, WAIT, bits=32) == 0b0100
        assert memory.change(4, "xor", (1 << 32) - 1, WAIT, bits=32) == 0b0101
        assert memory.compare_swap(4, -6, 9, WAIT, bits=32) == (1 << 32) - 6
        assert memory.compare_swap(4, 1, 10, WAIT, bits=32) == 9
        begun = memory.begin_atomic(4, "compare_swap", -1, expected=9, bits=32, timeout=WAIT)
        assert begun.finish(WAIT) == 9
        assert memory.begin_atomic(4, "add", 2, bits=32, timeout=WAIT).finish(WAIT) == (1 << 32) - 1
        assert area.read(0, 12) == b"\xee" * 4 + struct.pack("<I", 1) + b"\xee" * 4
        # Floats: the nearest one of 32 bits.
        assert memory.float_add(20, 1.1, WAIT, bits=32) == 0.0
        assert memory.begin_atomic(20, "float_add", 0.5, bits=32, timeout=WAIT).finish(WAIT) == numpy.float32(1.1)
        assert struct.unpack("<If", area.read(16, 8)) == (0, numpy.float32(1.1) + numpy.float32(0.5))
        assert memory.float_add(20, float("inf"), WAIT, bits=32) == numpy.float32(1.1) + numpy.float32(0.5)
        for use in (memory.change, memory.begin_atomic):
            for wrong in (16, 0, 65):
                with pytest.raises(ValueError, match="64 or 32"):
                    use(4, "add", 1, bits=wrong)
            for wrong in (1 << 32, -(1 << 31) - 1):
                with pytest.raises(hamlyn.Invalid, match="operand is an int from -2147483648 to 4294967295"):
                    use(4, "add", wrong, bits=32)
            with pytest.raises(TypeError, match="operand is an int"):
                use(4, "add", 1.5, bits=32)
            with pytest.raises(hamlyn.Invalid, match="bits is an int"):
                use(4, "add", 1, bits=-1)
        for wrong in (lambda: memory.compare_swap(4, 1 << 32, 0, bits=32), lambda: memory.compare_swap(4, 0, 1 << 32, bits=32)):
            with pytest.raises(hamlyn.Invalid, match="(expected|new) is an int"):
                wrong()
        for wrong in (lambda: memory.float_add(20, 1e39, bits=32), lambda: memory.begin_atomic(20, "float_add", -1e39, bits=32)):
            with pytest.raises(OverflowError, match="too large"):
                wrong()
        # A word lies at a multiple of its width.
        assert memory.change(12, "add", 0, WAIT, bits=32) == 0
        for offset, bits in ((2, 32), (4, 64), (12, 64)):
            with pytest.raises(hamlyn.Refused):
                memory.change(offset, "add", 1, WAIT, bits=bits)
        assert memory.outstanding == 0


def test_pieces() -> None:
    with opened("np") as (_, _, area, memory):
        matrix = numpy.arange(64, dtype="u8").reshape(8, 8)
        whole = memory.begin_put(0, matrix, WAIT)
        whole.finish(WAIT)
        column = memory.begin_read_strided(16, stride_bytes=64, piece_bytes=8, pieces=8, timeout=WAIT)
        assert (numpy.frombuffer(column.finish(WAIT), "u8") == matrix[:, 2]).all()
        put = memory.begin_put_strided(24, bytes(64), stride_bytes=64, piece_bytes=8, pieces=8, timeout=WAIT)
        assert put.finish(WAIT) is None
        matrix[:, 3] = 0
        assert (numpy.frombuffer(area.read(0, 512), "u8").reshape(8, 8) == matrix).all()
        offsets = [8 * number for number in (63, 0, 17)]
        read = memory.begin_read_indexed(offsets, piece_bytes=8, timeout=WAIT)
        assert numpy.frombuffer(read.finish(WAIT), "u8").tolist() == [63, 0, 17]
        put = memory.begin_put_indexed(numpy.array(offsets), b"a" * 8 + b"b" * 8 + b"c" * 8, piece_bytes=8, timeout=WAIT)
        put.finish(WAIT)
        assert area.read(0, 8) == b"b" * 8 and area.read(8 * 63, 8) == b"a" * 8
        for wrong in (
            lambda: memory.begin_put_strided(0, b"too few", stride_bytes=64, piece_bytes=8, pieces=8),
            lambda: memory.begin_put_indexed(offsets, b"too few", piece_bytes=8),
            lambda: memory.begin_read_indexed(offsets, piece_bytes=1 << 60),
        ):
            with pytest.raises((hamlyn.Invalid, hamlyn.TooLong)):
                wrong()
        with pytest.raises(hamlyn.TooLong):
            memory.begin_read_strided(0, stride_bytes=1 << 20, piece_bytes=8, pieces=8)
        with pytest.raises(TypeError):
            memory.begin_read_indexed(["0"], piece_bytes=8)
        assert memory.outstanding == 0


def test_is_done_says_so_when_it_is() -> None:
    with opened() as (alice, _, area, memory):
        area.write(0, b"abcd")
        read = memory.begin_read(0, 4, WAIT)
        assert not read.is_done
        with pytest.raises(hamlyn.TimedOut):
            read.finish(0)
        with pytest.raises(hamlyn.TimedOut):
            read.finish(0.01)
        while not read.is_done:
            alice.poll()
        assert read.finish(0) == b"abcd"


def test_what_is_not_granted() -> None:
    with opened("np", rights="read") as (_, _, _, memory):
        put, read = memory.begin_put(0, b"x", WAIT), memory.begin_read(0, 1, WAIT)
        assert read.finish(WAIT) == b"\0"
        with pytest.raises(hamlyn.Refused):
            put.finish(WAIT)
        counter = hamlyn.CompletionCounter()
        memory.begin_put(0, b"x", WAIT).count(counter)
        memory.begin_read(0, 8, WAIT).count(counter)
        with hamlyn.open() as other:
            with pytest.raises(hamlyn.TimedOut):
                other.interface.await_completions(counter, 3, 0.01)


def test_reads_have_the_landing_memory_in_turns() -> None:
    with opened(landing_bytes=64) as (alice, _, area, memory):
        area.write(0, bytes(range(64)))
        with pytest.raises(hamlyn.TooLong, match="landing"):
            memory.begin_read(0, 65, WAIT)
        first, second = memory.begin_read(0, 32, WAIT), memory.begin_read(32, 32, WAIT)
        with pytest.raises(hamlyn.Invalid, match="finish one first"):
            memory.begin_read(0, 1)
        # What nobody asks for any more may land all the same: others wait for it.
        del first
        gc.collect()
        assert memory.outstanding == 1
        with pytest.raises(hamlyn.TimedOut):
            memory.begin_read(0, 1, 0.01)
        with polled(alice):
            assert memory.begin_read(8, 8, WAIT).finish(WAIT) == bytes(range(8, 16))
            assert memory.read(0, 32, WAIT) == bytes(range(32))
            assert second.finish(WAIT) == bytes(range(32, 64))
        assert memory.outstanding == 0


def test_reads_that_find_no_room_give_their_landing_memory_back() -> None:
    with opened(landing_bytes=4096) as (alice, _, area, memory):
        area.write(0, bytes(range(256)) * 16)
        puts = []
        # Until there is no room for more: the owner makes no call.
        with pytest.raises(hamlyn.TimedOut):
            for _ in range(64):
                puts.append(memory.begin_put(8192, bytes(50_000), 0.01))
        for _ in range(5):
            with pytest.raises(hamlyn.TimedOut):
                memory.begin_read(0, 2048, 0.01)
        with polled(alice):
            for put in puts:
                put.finish(WAIT)
            assert memory.begin_read(0, 4096, WAIT).finish(WAIT) == bytes(range(256)) * 16
            assert memory.read(0, 4096, WAIT) == bytes(range(256)) * 16


def test_finish_all_keeps_each_result() -> None:
    with opened() as (alice, _, area, memory):
        area.write(0, bytes(range(64)))
        reads = [memory.begin_read(number, 1, WAIT) for number in range(32)]
        with pytest.raises(hamlyn.TimedOut):
            memory.finish_all(0)
        with polled(alice):
            memory.finish_all(WAIT)
        assert [read.finish(0) for read in reads] == [bytes([number]) for number in range(32)]
        memory.finish_all(0)


def test_as_many_as_may_be() -> None:
    with opened() as (alice, _, _, memory):
        begun = []
        with pytest.raises(hamlyn.Error) as too_many:
            for _ in range(100):
                begun.append(memory.begin_atomic(0, "add", 1, timeout=0.01))
        assert isinstance(too_many.value, (hamlyn.Invalid, hamlyn.TimedOut)) and len(begun) == memory.outstanding <= 64
        with polled(alice):
            assert sorted(one.finish(WAIT) for one in begun) == list(range(len(begun)))


def test_tasks_await_operations() -> None:
    async def main() -> None:
        with opened("np") as (_, _, area, memory):

            async def add(number: int) -> None:
                await memory.begin_atomic(0, "add", number, timeout=WAIT)

            await asyncio.gather(*(add(number) for number in range(40)))
            assert area.load_u64(0) == sum(range(40))
            assert await memory.begin_read(0, 2, WAIT) == area.read(0, 2)
            with pytest.raises(hamlyn.Released):
                read = memory.begin_read(0, 2, WAIT)
                await read
                await read

    asyncio.run(main())


def test_a_cancelled_task_leaves_its_operation() -> None:
    async def main() -> None:
        with opened() as (alice, _, area, memory):
            area.write(0, b"abcd")
            read = memory.begin_read(0, 4, WAIT)

            async def await_it() -> bytes:
                return await read

            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(await_it(), 0.01)
            with polled(alice):
                assert await read == b"abcd"

    asyncio.run(main())


@pytest.mark.parametrize("strategy", ["proc", "np"])
def test_counters(strategy: str) -> None:
    with opened(strategy) as (alice, me, area, memory), polled(alice):
        counter = hamlyn.CompletionCounter()
        assert (counter.completed, counter.failed, counter.ended) == (0, 0, 0)
        for number in range(50):
            memory.begin_put(8 * number, b"%08d" % number, WAIT).count(counter)
        me.interface.await_completions(counter, 50, WAIT)
        assert (counter.completed, counter.failed) == (50, 0)
        assert area.read(8 * 49, 8) == b"00000049"
        read = memory.begin_read(8, 8, WAIT)
        assert read.finish(WAIT) == b"00000001"
        with pytest.raises(hamlyn.Released):
            read.count(counter)


def test_wrong_arguments() -> None:
    with opened("np") as (_, me, _, memory):
        for wrong, said in [
            (lambda: memory.begin_atomic(0, "subtract", 1), '"add"'),
            (lambda: memory.begin_atomic(0, "compare_swap", 1), "expected"),
            (lambda: memory.begin_atomic(0, "add", 1, expected=2), "compare_swap"),
            (lambda: memory.begin_atomic(0, "float_add", 1, expected=2), "compare_swap"),
        ]:
            with pytest.raises(ValueError, match=said):
                wrong()
        for wrong in (
            lambda: memory.begin_put(0, "text"),
            lambda: memory.begin_atomic(0, "float_add", "1"),
            lambda: memory.begin_atomic(0, "add", 1.5),
            lambda: memory.begin_read("0", 1),
            lambda: memory.begin_read(0, 1, "soon"),
            lambda: hamlyn.Operation(),
            lambda: memory.begin_read(0, 1).count(5),
        ):
            with pytest.raises(TypeError):
                wrong()
        with pytest.raises(hamlyn.Invalid, match="offset is an int"):
            memory.begin_read(-1, 1)
        read = memory.begin_read(0, 4, WAIT)
        me.close()
        for late in (lambda: read.finish(0), lambda: read.is_done, lambda: memory.begin_read(0, 1), lambda: memory.finish_all(0)):
            with pytest.raises(hamlyn.HandleClosed):
                late()


def test_another_thread_and_ctrl_c() -> None:
    with opened() as (_, _, area, memory):
        area.write(0, b"abcd")
        read = memory.begin_read(0, 4, WAIT)
        refused = []

        def meddle() -> None:
            # The interpreter is let go while `finish` waits.
            while not refused:
                try:
                    read.is_done
                except hamlyn.InUse as error:
                    refused.append(error)
            signal.raise_signal(signal.SIGINT)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        meddling = threading.Thread(target=meddle)
        meddling.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                while True:
                    try:
                        read.finish(WAIT)
                    except hamlyn.InUse:
                        pass
        finally:
            meddling.join()
            signal.signal(signal.SIGINT, before)
        assert refused
        # Nothing is lost by it.
        assert not read.is_done and memory.outstanding == 1


def test_in_an_attached_region() -> None:
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        area = alice.interface.allocate(4096, "sparse")
        slot = alice.interface.open_slot(area, rights="all")
        region = alice.interface.share(slot)
        target = me.interface.target(slot.ticket(), WAIT)
        me.interface.attach(region.ticket, WAIT)
        memory = me.interface.open_initiator(target)
        put = memory.begin_put(8, b"at once.", WAIT)
        assert put.is_done
        read = memory.begin_read_strided(8, stride_bytes=4, piece_bytes=2, pieces=2, timeout=0)
        assert read.is_done and read.finish(0) == b"atnc"
        assert memory.begin_atomic(16, "add", 3, timeout=0).finish(0) == 0
        assert memory.begin_read_word(16, 0).finish(0) == 3
