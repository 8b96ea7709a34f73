"""A record of a hostile end of a `Channel` costs the other an exception, and no time or memory
beyond what its record has."""

from __future__ import annotations

import json
import random
import struct
import time
import tracemalloc
from typing import Any, Iterator

import numpy
import pytest
from test_channel import HOSTILE, VALUES, Frozen, Point, frame

import hamlyn
from hamlyn import dtypes, frames

MUTANTS = 20_000
HEAD = struct.Struct("<2sBBIQ")


class Record(bytes):
    """A record, as a receiver has it."""

    sender = None

    def tobytes(self) -> bytes:
        return bytes(self)


class Outgoing:
    """The sending end of a stream, which keeps its records."""

    def __init__(self) -> None:
        self.records: list[bytes] = []

    def send(self, data: Any, timeout: Any = None) -> None:
        self.records.append(bytes(data))

    def flush(self, timeout: Any = None) -> None:
        pass

    def close(self, timeout: Any = None) -> None:
        pass


@pytest.fixture
def channel() -> Iterator[hamlyn.Channel]:
    with hamlyn.open() as manager:
        yield hamlyn.Channel(manager, False, (Point, Frozen), False)


def sent(channel: hamlyn.Channel, value: Any) -> list[bytes]:
    channel._outgoing = outgoing = Outgoing()
    assert channel.send(value) is True
    channel._outgoing = None
    return outgoing.records


def taken(channel: hamlyn.Channel, records: list[bytes], copy: bool = True) -> Any:
    """Returns the object that a receiver makes of records, or its exception."""
    channel._head = channel._seed = None
    found = None
    for record in records:
        try:
            _, found = channel._take(Record(record), copy)
        except hamlyn.Malformed as error:
            assert len(str(error)) < 1000 and "the peer sent" in str(error)
            found = error
    return found


def alone(lengths: list[int], text: bytes, rest: bytes = b"", apart: bool = False) -> bytes:
    """An array alone, as its head says."""
    head = HEAD.pack(b"hC", 1, 7 if apart else 6, len(lengths), len(text)) + struct.pack(f"<{len(lengths)}Q", *lengths) + text
    return head + bytes(-len(head) % 64) + rest


def nested(levels: int, kind: str) -> Any:
    value: Any = 5
    for _ in range(levels):
        value = {"list": [value], "tuple": {"\0": "tuple", "items": [value]}, "type": [value, [1]]}[kind]
    return value


def array(shape: Any, described: Any, at: int = 0) -> dict[str, Any]:
    return {"\0": "array", "type": described, "shape": shape, "at": at}


HUGE = (1 << 64) - 1
LENGTHS = struct.pack("<Q", 8)
# Records that cost much if they are believed before they are checked.
COSTLY = {
    "dimensions": alone([HUGE] * (1 << 20), b"|u1"),
    "dimensions of a part": frame(2, 1, array([HUGE] * 200_000, "|u1"), LENGTHS + bytes(100)),
    "a type of many bytes": alone([0], b"u1," + b" " * 8_000_000),
    "a type of many bytes in a part": frame(2, 1, array([0], "u1," + " " * 8_000_000), LENGTHS + bytes(100)),
    "types in types": frame(2, 1, array([1], nested(900, "type")), LENGTHS + bytes(100)),
    "fields": frame(
        2,
        1,
        array([1], {"names": list(map(str, range(100_000))), "formats": ["|u1"] * 100_000, "offsets": [0] * 100_000, "itemsize": 1}),
        LENGTHS + bytes(100),
    ),
    "empty buffers": HEAD.pack(b"hC", 1, 2, 1 << 20, 2) + b"[]" + bytes(8 << 20),
    "empty buffers of one part": frame(2, 1 << 20, {"\0": "bytes", "at": 0}, bytes(8 << 20)),
    "one buffer many times": frame(2, 1, [{"\0": "bytes", "at": 0}] * 50_000, struct.pack("<Q", 1 << 20) + bytes((1 << 20) + 64)),
    "empty lists": frame(2, 0, b"[" + b"[]," * 4_000_000 + b"1]"),
    "lists in lists": frame(2, 0, b"[" * 4_000_000),
    "tuples in tuples": frame(2, 0, nested(300, "tuple")),
    "dictionaries in dictionaries": frame(2, 0, b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "digits": frame(2, 0, b"9" * 4_000_000),
    "digits in a list": frame(2, 0, b"[" + b"9" * 4_000_000 + b"]"),
    "keys that collide": frame(2, 0, {"\0": "dict", "items": [[((1 << 61) - 1) * number, 0] for number in range(1, 100_000)]}),
    "fields of a class": frame(2, 0, {"\0": "dataclass", "name": "test_channel.Point", "fields": {str(number): 0 for number in range(100_000)}}),
    "a class of a long name": frame(2, 0, {"\0": "dataclass", "name": "x" * 4_000_000, "fields": {}}),
    "a kind of a long name": frame(2, 0, {"\0": "x" * 4_000_000}),
    "a structure of its own length": HEAD.pack(b"hC", 1, 2, 0, HUGE) + bytes(100),
    "texts and texts": frame(2, 0, b'"\\u0000' * 1_000_000),
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_costly_record(channel: hamlyn.Channel, name: str) -> None:
    record = COSTLY[name]
    tracemalloc.start()
    try:
        begun = time.process_time()
        assert isinstance(taken(channel, [record]), hamlyn.Malformed)
        took, (_, peak) = time.process_time() - begun, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A second for 8 MiB, where the costs that this is about are minutes, on whatever machine.
    assert took < 5, took
    assert peak < (4 << 20) + 12 * len(record), peak


def test_the_most_parts(channel: hamlyn.Channel) -> None:
    """As many as are taken have memory of their number, and both ends have one limit."""
    empties = frame(2, 0, b"[" + b"[]," * ((frames.PARTS_MAX - 2) // 2) + b"1]")
    begun = time.process_time()
    assert len(taken(channel, [empties])) == frames.PARTS_MAX // 2
    assert time.process_time() - begun < 20
    text = '[[,"\\' * 1_000_000
    assert taken(channel, sent(channel, [text])) == [text]
    with pytest.raises(hamlyn.TooLong, match="array of NumPy"):
        sent(channel, [0] * (frames.PARTS_MAX + 1))
    deep: Any = []
    for _ in range(frames.DEPTH_MAX - 1):
        deep = [deep]
    assert taken(channel, sent(channel, deep)) == deep
    with pytest.raises(hamlyn.TooLong, match="flat"):
        sent(channel, [deep])


def test_heads_that_are_kept(channel: hamlyn.Channel) -> None:
    """However many arrays a peer sends, and of whatever types, their heads have a bound."""
    frames._heads_received.clear()
    for number in range(2_000):
        for text in (b"|u1", b"<M8[%ds]" % (number + 1)):
            taken(channel, [alone([0] + [number] * (number % 70), text)])
    assert len(frames._heads_received) <= 256
    assert sum(map(len, frames._heads_received)) <= 256 * 256


def outcomes(channel: hamlyn.Channel, records: list[bytes]) -> None:
    found = taken(channel, records, copy=len(records[0]) % 2 == 0)
    if isinstance(found, numpy.ndarray):
        assert not dtypes.holds_addresses(found.dtype)


CORPUS = [[record] for record in HOSTILE] + [
    [alone([3], b"<f8", bytes(23))],
    [alone([3], b"<f8", apart=True), bytes(23)],
    [alone([], b"|O", bytes(8))],
    [alone([1], b"|T16", bytes(16))],
    [alone([1], b"f8,O", bytes(16))],
    [alone([1], b"\xff\xfe", bytes(16))],
    [alone([1 << 63], b"|u1", bytes(16))],
    [alone([1] * 64, b"|u1", b"x")],
    [frame(2, 1, array([1], {"names": ["a"], "formats": ["|O"], "offsets": [0], "itemsize": 8}), LENGTHS + bytes(100))],
    [frame(2, 1, array([1], {"names": ["a"], "formats": ["<f8"], "offsets": [1 << 62], "itemsize": 8}), LENGTHS + bytes(100))],
    [frame(2, 1, array([1], {"names": ["a", "b"], "formats": ["<f4"], "offsets": [0], "itemsize": 8}), LENGTHS + bytes(100))],
    [frame(2, 1, array([1], {"names": ["a"], "formats": ["<f8"], "offsets": [-8], "itemsize": 8}), LENGTHS + bytes(100))],
    [frame(2, 1, array([True], "<f8"), LENGTHS + bytes(100))],
    [frame(2, 1, array([1.0], "<f8"), LENGTHS + bytes(100))],
    [frame(2, 2, [{"\0": "bytes", "at": 1}, {"\0": "bytes", "at": 0}], bytes(100))],
    [frame(2, 1, [5, "at"], struct.pack("<Q", 1) + bytes(100))],
    [frame(2, 1, {"\0": "bytes", "at": False}, struct.pack("<Q", 1) + bytes(100))],
    [frame(2, 0, {"\0": ["tuple"]})],
    [frame(2, 0, {"\0": "dict", "items": [[{"\0": "tuple", "items": [[]]}, 1]]})],
    [frame(3, 1, {"\0": "bytes", "at": 0}), b"x" * 3_000],
    [frame(3, 1, {"\0": "bytes", "at": 1}), b"x" * 3_000],
    [frame(8, 0, b"")],
    [frame(8, 0, b"x" * 76)],
]


def test_the_corpus(channel: hamlyn.Channel) -> None:
    for records in CORPUS:
        outcomes(channel, records)


def test_mutants(channel: hamlyn.Channel) -> None:
    """Records that are nearly right: bytes and numbers changed, cut, doubled, put together from
    two. The same ones each time."""
    seeds = [sent(channel, value) for value in VALUES if not isinstance(value, bytes) and sum(map(len, sent(channel, value))) < 20_000] + CORPUS
    chance = random.Random(2026)
    texts = [b"array", b'"at":', b"[", b"{", b"\\u0000", b"dict", b"O", b"names", b"1e999", b"-1", b"9" * 30, b"NaN", b'"shape":[0,']
    begun = time.process_time()
    for _ in range(MUTANTS):
        records = [bytearray(record) for record in chance.choice(seeds)]
        for _ in range(chance.choice((1, 1, 2, 5))):
            record = chance.choice(records)
            at = chance.randrange(len(record) + 1)
            change = chance.randrange(7)
            if change == 0 and record:
                record[at % len(record)] = chance.randrange(256)
            elif change == 1:
                record[at : at + 8] = struct.pack("<Q", chance.choice((0, 1, HUGE, 1 << 62, 1 << 31, chance.getrandbits(64))))
            elif change == 2:
                del record[at:]
            elif change == 3:
                record[at:at] = record[: chance.randrange(64)]
            elif change == 4:
                record[at:at] = chance.choice(texts)
            elif change == 5:
                record[at:] = chance.choice(chance.choice(seeds))[at:]
            elif len(record) > 8:
                # The head: kind, number of buffers, length of the structure.
                record[3] = chance.randrange(10)
                record[4:8] = struct.pack("<I", chance.choice((0, 1, 2, 64, 65, 1 << 20)))
        outcomes(channel, [bytes(record) for record in records])
    assert time.process_time() - begun < 30


def greeted_for_another(frames_sent: list[bytes]) -> None:
    with hamlyn.open() as me, hamlyn.open("third") as third:
        stream = me.connect_stream("numbers/channel", 60)
        theirs = third.open_stream()
        stream.send(HEAD.pack(b"hC", 1, 8, 0, 0) + theirs.seed)
        for each in frames_sent:
            stream.send(each)
        stream.close()
        # Nobody connects to the third.
        assert third.next_event(0.2) is None


def test_nobody_has_a_receiver_connect_to_others() -> None:
    from conftest import running

    with hamlyn.Channel.bind("numbers") as channel, running(greeted_for_another, [frame(0, 1, b"", b"good")]):
        with pytest.raises(hamlyn.Malformed, match="greeting for another program"):
            channel.recv(60)
        assert channel.recv(60) == b"good"


def padded() -> Iterator[Any]:
    """Arrays between whose numbers lie bytes of this program's."""
    for dtype in (
        numpy.dtype([("a", "i1"), ("b", "f8"), ("c", [("d", "i2"), ("e", "i8")], (2,))], align=True),
        numpy.dtype({"names": ["b", "a"], "formats": ["<i4", "i1"], "offsets": [8, 1], "itemsize": 20}),
        numpy.dtype("g"),
        numpy.dtype("G").newbyteorder(),
        numpy.dtype([("a", "g"), ("b", "u1")]),
    ):
        yield numpy.frombuffer(b"\xa5" * dtype.itemsize * 6, dtype).reshape(2, 3)


def numbers(array: Any) -> Any:
    """The bytes of the numbers alone."""
    return all_bytes(array)[:, ~gaps_of(array.dtype)]


def all_bytes(array: Any) -> Any:
    array = numpy.ascontiguousarray(array)
    return array.reshape(-1).view(numpy.uint8).reshape(-1, array.dtype.itemsize)


def gaps_of(dtype: Any) -> Any:
    """Returns a mask of the bytes of an item that belong to no number."""
    gaps = numpy.ones(dtype.itemsize, bool)
    if dtype.names is None:
        base, shape = dtype.subdtype or (dtype, ())
        if base.names is not None:
            return numpy.tile(gaps_of(base), int(numpy.prod(shape)))
        gaps[:] = False
        if base.char in "gG" and numpy.finfo("g").nmant == 63:
            gaps.reshape(-1, 16)[:, 10:] = True
            gaps = gaps if base.isnative else gaps.reshape(-1, 16)[:, ::-1].reshape(-1)
        return gaps
    for name in dtype.names:
        field, offset = dtype.fields[name][:2]
        gaps[offset : offset + field.itemsize] = gaps_of(field)
    return gaps


def test_what_lies_between_numbers_is_not_sent(channel: hamlyn.Channel) -> None:
    for junk in padded():
        for value in (junk, junk[0, 0], junk[:, ::2], [junk]):
            records = sent(channel, value)
            came = taken(channel, records)
            came, value = (came[0], value[0]) if isinstance(value, list) else (came, value)
            assert type(came) is type(value) and came.dtype == value.dtype and came.shape == value.shape
            if value.dtype.char != "G" or isinstance(came, numpy.ndarray):
                # A scalar is made anew here, of numbers alone.
                assert not all_bytes(came)[:, gaps_of(value.dtype)].any(), value.dtype
            assert numpy.array_equal(numbers(came), numbers(value))


def test_json_of_the_heads_is_what_it_says(channel: hamlyn.Channel) -> None:
    record = sent(channel, {"a": numpy.zeros(2, [("x", "i1"), ("y", "f8")])})[0]
    _, _, kind, count, length = HEAD.unpack_from(record)
    structure = json.loads(record[16 : 16 + length])
    assert (kind, count, structure["a"]["type"]["names"]) == (2, 1, ["x", "y"])
