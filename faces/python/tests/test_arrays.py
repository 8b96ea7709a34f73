"""`shared_array`: one writes, others read."""

from __future__ import annotations

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
