"""`shared_array`: one writes, others read."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import struct
import time
from typing import Any

import numpy
import pytest
from conftest import running

import hamlyn

WAIT = 60


def reading(trust: bool) -> None:
    with hamlyn.shared_array("field", timeout=WAIT, trust_publisher=trust) as field:
        last = -1
        for version in field:
            value = int(version[0, 0])
            assert value > last and version.shape == (100, 50) and version.dtype == numpy.dtype("i4")
            assert (version == value).all() and not version.flags.writeable
            last = value
            if last == 999:
                return
        raise AssertionError("the last version did not come")


@pytest.mark.parametrize("trust", [False, True])
def test_readers_have_whole_versions(trust: bool) -> None:
    with hamlyn.shared_array("field", (100, 50), "i4") as field, running(reading, trust), running(reading, trust):
        assert field.publisher.await_readers(2, WAIT) == 2
        for number in range(1000):
            with field.write(WAIT) as new:
                new.array[:] = number
        field.publisher.flush(WAIT)
        # The newest is kept for those that have no room; readers leave when they have it.
        while field.publisher.readers:
            field.poll()


@pytest.mark.parametrize("strategy", ["proc", "np"])
@pytest.mark.parametrize("is_trusting", [False, True])
def test_the_newest_needs_no_call_of_the_writer(strategy: str, is_trusting: bool) -> None:
    with hamlyn.open("alice", strategy=strategy) as alice, hamlyn.open(strategy=strategy) as me:
        field = hamlyn.shared_array("field", (1000,), manager=alice, versions=4)
        reader = hamlyn.shared_array("alice/field", manager=me, timeout=WAIT, trust_publisher=is_trusting)
        assert reader.latest(0) is None
        assert field.publisher.await_readers(1, WAIT)
        for number in range(1000):
            field.publish(number)
        # From here on only readers call.
        newest = reader.latest(0)
        assert (newest == 999).all() and reader.latest(0) is None
        late = hamlyn.shared_array("alice/field", manager=me, timeout=WAIT, trust_publisher=is_trusting)
        came = late.latest(0)
        assert (came == 999).all() and late.latest(0) is None
        # What was copied stays, whatever comes next.
        for number in range(1000, 1010):
            field.publish(number)
        assert (newest == 999).all() and (came == 999).all()
        assert (reader.latest(WAIT) == 1009).all()


def test_versions_are_held_by_their_arrays() -> None:
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        field = hamlyn.shared_array("field", (10,), manager=alice, versions=3)
        reader = hamlyn.shared_array("alice/field", manager=me, timeout=WAIT, trust_publisher=True)
        assert reader.latest(0) is None
        field.publisher.await_readers(1, WAIT)
        field.publish(numpy.arange(10))
        first = reader.latest(WAIT)
        field.publish(7)
        second = reader.latest(WAIT)
        field.publish(8)
        assert (first == numpy.arange(10)).all() and (second == 7).all()
        with pytest.raises(ValueError):
            first[0] = 1
        reader.close()
        field.close()
        assert (first == numpy.arange(10)).all()


def test_a_version_that_is_kept_by_its_writer() -> None:
    with hamlyn.shared_array("field", (10,)) as field:
        with pytest.raises(BufferError, match="still in a variable"):
            with field.write() as new:
                kept = new.array
        del kept
        with field.write() as new:
            numpy.add(1, 2, out=new.array[:5])
            assert new[0] == 3
        with pytest.raises(ValueError, match="was published"):
            new[0] = 1
        with pytest.raises(ZeroDivisionError):
            with field.write() as new:
                new[0] = 1 / 0


def test_settings() -> None:
    with pytest.raises(TypeError, match="Python objects"):
        hamlyn.shared_array("field", (1,), "O")
    with hamlyn.open("alice") as alice:
        with pytest.raises(TypeError, match="open already"):
            hamlyn.shared_array("field", (1,), manager=alice, strategy="np")
        alice.bind_publisher("other", message_bytes=64)
        empty = hamlyn.shared_array("empty", (0, 5), manager=alice)
        with empty.write() as new:
            assert new.array.shape == (0, 5)
        structured = hamlyn.shared_array("structured", 3, [("a", "i4"), ("b", "f8", (2,))], manager=alice)
        with structured.write() as new:
            new["a"] = 5


def test_a_publisher_that_sends_nonsense() -> None:
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        publisher = alice.bind_publisher("field", message_bytes=4096)
        reader = hamlyn.shared_array("alice/field", manager=me, timeout=WAIT)
        assert reader.latest(0) is None
        publisher.await_readers(1, WAIT)
        for wrong in (b"", b"x" * 100, b"hA\1\0\xff\xff\xff\xff", b'hA\1\0\x0c\0\0\0["O", [1000]]', b'hA\1\0\x05\0\0\0[1,2]' + bytes(100)):
            publisher.publish(wrong, WAIT)
            with pytest.raises(hamlyn.Malformed, match="no shared array"):
                reader.latest(WAIT)


def test_shapes_and_types_that_cannot_be_shared() -> None:
    record = numpy.dtype((numpy.record, [("a", "i4")]))
    with hamlyn.open("alice") as alice:
        for shape, dtype, kind, said in [
            ((-2, -3), "f8", ValueError, "a length of shape is an int from 0"),
            (-1, "f8", ValueError, "a length of shape"),
            ((True,), "f8", TypeError, "a length of shape.*not bool"),
            (True, "f8", TypeError, "not bool"),
            ((2.0,), "f8", TypeError, "not float"),
            ("ab", "f8", TypeError, "not str"),
            (1 << 200, "f8", ValueError, "far larger"),
            ((5 << 30,), "u1", ValueError, "a length of shape is an int from 0 to 4294967295, not 5368709120"),
            ((3 << 30, 2), "u1", hamlyn.TooLong, "at most 4294967295 bytes"),
            ((0xFFFF_FFFF,), "u1", hamlyn.TooLong, "in parts"),
            ((1 << 31,) * 64, "f8", hamlyn.TooLong, "in parts"),
            ((1,) * 65, "f8", ValueError, "at most 64 lengths, not 65"),
            ((2,), "S0", TypeError, "cannot be sent by type"),
            ((2,), "O", TypeError, "Python objects"),
            ((2,), [("a", "i4"), ("b", "O")], TypeError, "Python objects"),
            ((2,), [], TypeError, "cannot be sent by type"),
            ((2,), record, TypeError, "cannot be sent by type"),
        ]:
            with pytest.raises(kind, match=said):
                hamlyn.shared_array("field", shape, dtype, manager=alice)
        for name in ("versions", "readers"):
            for wrong, kind in [(0, ValueError), (-1, ValueError), (1 << 40, ValueError), (True, TypeError), (1.0, TypeError), (None, TypeError)]:
                with pytest.raises(kind, match=f"{name} is an int from 1 to"):
                    hamlyn.shared_array("field", (2,), manager=alice, **{name: wrong})


SHAPES: list[Any] = [3, numpy.int64(3), (numpy.int64(3), 2), numpy.zeros((2, 3)).shape, numpy.array([2, 3]), [2, 3], (), (0, 5), range(1, 3)]
TYPES: list[Any] = [
    "f8",
    ">i2",
    "U3",
    "M8[s]",
    numpy.dtype([("a", "i1"), ("b", "f8")], align=True),
    [("b", "i4", (2,)), ("a", [("c", "i8")])],
]


def test_all_shapes_and_types_arrive() -> None:
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        for shape, dtype in itertools.product(SHAPES, TYPES):
            values = numpy.zeros(tuple(shape) if hasattr(shape, "__iter__") else shape, dtype)
            item = values.dtype.itemsize
            values = numpy.frombuffer(b"\x41\0\0\0" * values.nbytes, dtype)[: values.size].reshape(values.shape) if values.size else values
            with hamlyn.shared_array("field", shape, dtype, manager=alice) as field:
                with hamlyn.shared_array("alice/field", manager=me, timeout=WAIT) as reader:
                    assert reader.latest(0) is None and field.publisher.await_readers(1, WAIT)
                    field.publish(values)
                    came = reader.latest(WAIT)
                    assert came.dtype == values.dtype and came.shape == field.shape == values.shape
                    assert (came == values).all()
                    if values.dtype.isalignedstruct and values.size:
                        # Bytes between the numbers are zeros.
                        assert not came.reshape(-1).view("u1").reshape(-1, item)[:, 1:8].any()


def worker(namespace: str, number: int) -> None:
    # A server that forks has the environment of an earlier test.
    os.environ["HAMLYN_NAMESPACE"] = namespace
    with hamlyn.shared_array("field", timeout=WAIT) as field, hamlyn.shared_array(f"answer{number}", (3,)) as answer:
        array = next(iter(field))
        answer.publisher.await_readers(1, WAIT)
        answer.publish(array + number)
        answer.publisher.flush(WAIT)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_start_methods(method: str, namespace: str) -> None:
    context = multiprocessing.get_context(method)
    workers = [context.Process(target=worker, args=(namespace, number)) for number in range(2)]
    for process in workers:
        process.start()
    with hamlyn.shared_array("field", (3,)) as field:
        field.publisher.await_readers(2, WAIT)
        field.publish([1, 2, 3])
        field.publisher.flush(WAIT)
        for number, process in enumerate(workers):
            with hamlyn.shared_array(f"answer{number}", timeout=WAIT) as answer:
                while (came := answer.latest(0.01)) is None:
                    field.poll()
                assert (came == numpy.array([1, 2, 3]) + number).all()
            process.join(WAIT)
            assert process.exitcode == 0


def message(described: Any, rest: bytes = bytes(64)) -> bytes:
    text = described if isinstance(described, bytes) else json.dumps(described).encode()
    head = struct.pack("<2sBBI", b"hA", 1, 0, len(text)) + text
    return head + bytes(-len(head) % 64) + rest


HOSTILE = [
    b"",
    b"hA",
    message(b"{"),
    message(b"[" * 60_000),
    message(b"9" * 60_000),
    message(b'["<f8",[' + b"9" * 4_000 + b"]]"),
    message(["<f8", [(1 << 64) - 1] * 3_000]),
    message(["<f8", [1 << 62, 0]]),
    message(["<f8", [-1]]),
    message(["<f8", [True]]),
    message(["<f8", 5]),
    message(["<f8"]),
    message(["|O", [1]]),
    message(["|V0", [1 << 60]]),
    message(["u1," + " " * 60_000, [1]]),
    message([[["a", "|O"]], [1]]),
    message([{"names": ["a"], "formats": ["|O"], "offsets": [0], "itemsize": 8}, [1]]),
    message([{"names": ["a"] * 5_000, "formats": ["|u1"] * 5_000, "offsets": [0] * 5_000, "itemsize": 8}, [1]]),
    message(["<f8", [9]]),
    struct.pack("<2sBBI", b"hA", 1, 0, 0xFFFF_FFFF) + bytes(64),
    struct.pack("<2sBBI", b"hB", 1, 0, 2) + bytes(64),
]


def test_a_publisher_that_sends_nonsense() -> None:
    from hamlyn.arrays import _array_of

    begun = time.process_time()
    for wrong in HOSTILE:
        with pytest.raises(hamlyn.Malformed, match="no shared array"):
            _array_of(memoryview(wrong))
    chance = random.Random(2026)
    good = [message(["<f8", [2, 4]]), message([{"names": ["a"], "formats": ["<f8"], "offsets": [0], "itemsize": 8}, [8]])]
    for _ in range(5_000):
        record = bytearray(chance.choice(good + HOSTILE[4:]))
        for _ in range(chance.choice((1, 2, 4))):
            at = chance.randrange(min(len(record), 100) + 1)
            if chance.random() < 0.5 and record:
                record[at % len(record)] = chance.randrange(256)
            else:
                record[at:at] = chance.choice([b"9" * 20, b"[", b"-", b"O", b"1e999", b'"a"'])
        try:
            array = _array_of(memoryview(record))
        except hamlyn.Malformed:
            continue
        assert not array.dtype.hasobject
    assert time.process_time() - begun < 30
