"""`Channel`: what it carries, what it refuses, and what a peer can do to it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import multiprocessing
import struct
from typing import Any

import numpy
import pytest
from conftest import running

import hamlyn

WAIT = 60


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0
    more: Any = None
    computed: int = dataclasses.field(default=0, init=False)


@dataclasses.dataclass(frozen=True)
class Frozen:
    name: str


@dataclasses.dataclass
class Unknown:
    x: int


def echoing() -> None:
    with hamlyn.Channel.connect("numbers", WAIT, classes=(Point, Frozen)) as channel:
        for value in channel:
            channel.send(value)


def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, numpy.ndarray):
        return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if dataclasses.is_dataclass(left):
        return all(same(getattr(left, field.name), getattr(right, field.name)) for field in dataclasses.fields(left))
    return bool(left == right)


VALUES: list[Any] = [
    None,
    True,
    0,
    -(2**100),
    1.5,
    float("inf"),
    "text with \u00e9\u4e16\0 and \ud800",
    b"",
    b"short",
    b"long" * 10_000,
    bytearray(b"mutable"),
    [],
    [1, [2, [3]], (4, (5,))],
    {"a": 1, "b": {"c": b"x"}},
    {1: "one", (2, 3): None, "\0": 4},
    Point(1, 2.5, [Frozen("inside"), numpy.arange(3)]),
    numpy.arange(10),
    numpy.zeros((3, 4, 5), "f4"),
    numpy.arange(12).reshape(3, 4)[:, ::2],
    numpy.asfortranarray(numpy.arange(12).reshape(3, 4)),
    numpy.zeros((0, 7), "i2"),
    numpy.array(5.0),
    numpy.float32(2.5),
    numpy.array(["a", "bcd"]),
    numpy.array(["2020-01-02"], "M8[D]"),
    numpy.array([(1, 2.5, [1, 2])], dtype=[("a", "<i4"), ("b", "<f8"), ("c", "<u2", (2,))]),
    numpy.arange(100_000, dtype=">i8"),
    {"many": [numpy.full(number, number) for number in range(1, 20)], "long": numpy.ones(50_000)},
]


def test_everything_comes_back() -> None:
    with running(echoing) as peer, hamlyn.Channel.bind("numbers", classes=(Point, Frozen)) as channel:
        for value in VALUES:
            channel.send(value, WAIT)
            came = channel.recv(WAIT)
            assert same(value, came), (value, came)
            if isinstance(came, numpy.ndarray):
                assert came.flags.writeable
        channel.send(memoryview(b"abc"))
        assert channel.recv(WAIT) == b"abc"
        channel.close()
        assert peer.pid


def pickling_back() -> None:
    with hamlyn.Channel.connect("numbers", WAIT, allow_pickle=True) as channel:
        value = channel.recv(WAIT)
        channel.send(value, pickle=True)
        channel.send([value] * 5000, pickle=True)


def test_pickles_are_for_those_who_allow_them() -> None:
    with running(pickling_back), hamlyn.Channel.bind("numbers") as channel:
        channel.send({1, 2}, WAIT, pickle=True)
        for _ in range(2):
            with pytest.raises(hamlyn.Malformed, match="allow_pickle"):
                channel.recv(WAIT)


def test_arrays_without_a_copy() -> None:
    with running(echoing), hamlyn.Channel.bind("numbers") as channel:
        for length in (10, 10_000):
            channel.send(numpy.arange(length), WAIT)
            array = channel.recv(WAIT, copy=False)
            channel.send(b"more")
            assert channel.recv(WAIT) == b"more"
            assert not array.flags.writeable and (array == numpy.arange(length)).all()
            del array


def test_what_cannot_be_sent() -> None:
    with contextlib.ExitStack() as stack:
        channel = hamlyn.Channel.bind("numbers")
        with pytest.raises(hamlyn.TimedOut, match="nobody has connected"):
            channel.send(b"x", 0)
        # The peer ends when the channel is closed.
        stack.enter_context(running(echoing))
        stack.enter_context(channel)
        channel.send(b"x", WAIT)
        assert channel.recv(WAIT) == b"x"
        for wrong, said in [
            (object(), "dataclasses; not object"),
            (numpy.array([object()]), "Python objects"),
            ({1: {2}}, "not set"),
            (Point, "not type"),
        ]:
            with pytest.raises(TypeError, match=said):
                channel.send(wrong)
        with pytest.raises(hamlyn.TimedOut, match="nothing came"):
            channel.recv(0)
        # Nothing of it was sent.
        channel.send(b"still there")
        assert channel.recv(WAIT) == b"still there"
        with pytest.raises(TypeError, match="dataclasses"):
            channel.accept(int)


def sending(value: Any) -> None:
    with hamlyn.Channel.connect("numbers", WAIT) as channel:
        channel.send(value)


def test_a_class_that_is_not_registered() -> None:
    with running(sending, Unknown(1)), hamlyn.Channel.bind("numbers") as channel:
        with pytest.raises(hamlyn.Malformed, match="register it"):
            channel.recv(WAIT)


def hostile(frames: list[bytes]) -> None:
    with hamlyn.open() as me:
        stream = me.connect_stream("numbers/channel", WAIT)
        incoming = me.open_stream()
        stream.send(struct.pack("<2sBBIQ", b"hC", 1, 8, 0, 0) + incoming.seed)
        for frame in frames:
            stream.send(frame)
        stream.close()


def frame(kind: int, buffers: int, structure: Any, rest: bytes = b"") -> bytes:
    text = structure if isinstance(structure, bytes) else json.dumps(structure).encode()
    return struct.pack("<2sBBIQ", b"hC", 1, kind, buffers, len(text)) + text + rest


HOSTILE = [
    b"",
    b"short",
    b"x" * 16,
    struct.pack("<2sBBIQ", b"hC", 9, 0, 0, 0),
    frame(77, 0, b""),
    struct.pack("<2sBBIQ", b"hC", 1, 2, 0, 1 << 60),
    struct.pack("<2sBBIQ", b"hC", 1, 2, 1 << 31, 0),
    frame(2, 0, b"{"),
    frame(2, 0, b"\xff\xff"),
    frame(2, 0, b"[" * 100_000),
    frame(2, 0, b"9" * 10_000),
    frame(2, 0, {"\0": "nothing"}),
    frame(2, 0, {"\0": "bytes", "at": 0}),
    frame(2, 0, {"\0": "bytes", "at": -1}),
    frame(2, 0, {"\0": "bytes", "at": "0"}),
    frame(2, 0, {"\0": "tuple", "items": 5}),
    frame(2, 0, {"\0": "dict", "items": [[[], 1]]}),
    frame(2, 0, {"\0": "dict", "items": [1]}),
    frame(2, 0, {"\0": "dataclass", "name": "os.system", "fields": {}}),
    frame(2, 0, {"\0": "dataclass", "name": "test_channel.Point", "fields": {"z": 1}}),
    frame(2, 0, {"\0": "dataclass", "name": "test_channel.Point", "fields": {}}),
    frame(2, 1, {"\0": "array", "type": "O", "shape": [1], "at": 0}, struct.pack("<Q", 8) + bytes(100)),
    frame(2, 1, {"\0": "array", "type": "f8", "shape": [1 << 60], "at": 0}, struct.pack("<Q", 8) + bytes(100)),
    frame(2, 1, {"\0": "array", "type": "f8", "shape": [-1], "at": 0}, struct.pack("<Q", 8) + bytes(100)),
    frame(2, 1, {"\0": "array", "type": "f8", "shape": [0, 1 << 62], "at": 0}, struct.pack("<Q", 0) + bytes(100)),
    frame(2, 1, {"\0": "array", "type": "V0", "shape": [1 << 40], "at": 0}, struct.pack("<Q", 0) + bytes(100)),
    frame(2, 1, {"\0": "array", "type": "nonsense", "shape": [1], "at": 0}, struct.pack("<Q", 8) + bytes(100)),
    frame(2, 1, {"\0": "array", "type": [["a", [["b", "O"]]]], "shape": [1], "at": 0}, struct.pack("<Q", 8) + bytes(100)),
    frame(2, 1, {"\0": "array", "type": [5], "shape": [1], "at": 0}, struct.pack("<Q", 8) + bytes(100)),
    frame(2, 1, {"\0": "array", "type": {}, "shape": [1], "at": 0}, struct.pack("<Q", 8) + bytes(100)),
    frame(2, 1, {"\0": "bytes", "at": 0}, struct.pack("<Q", 1 << 50)),
    frame(2, 3, {"\0": "bytes", "at": 0}, b"x"),
    frame(4, 1, b"", b"not a pickle that is looked at"),
    frame(8, 0, b"", b"a second greeting"),
    # Arrays alone: kind, dimensions, type.
    struct.pack("<2sBBIQ", b"hC", 1, 6, 1, 3) + struct.pack("<Q", 1 << 60) + b"<f8" + bytes(100),
    struct.pack("<2sBBIQ", b"hC", 1, 6, 1 << 30, 3) + b"<f8" + bytes(100),
    struct.pack("<2sBBIQ", b"hC", 1, 6, 1, 2) + struct.pack("<Q", 1) + b"|O" + bytes(100),
    struct.pack("<2sBBIQ", b"hC", 1, 6, 40, 3) + struct.pack("<40Q", *[1] * 40) + b"<f8" + bytes(100),
    struct.pack("<2sBBIQ", b"hC", 1, 6, 2, 3) + struct.pack("<2Q", 0, 1 << 62) + b"<f8" + bytes(64 - 35),
]


def test_a_peer_that_sends_nonsense() -> None:
    """Each frame is one error, and the next is read as what it is."""
    with hamlyn.Channel.bind("numbers", classes=(Point,)) as channel:
        frames = [item for wrong in HOSTILE for item in (wrong, frame(0, 1, b"", b"good"))]
        with running(hostile, frames):
            for wrong in HOSTILE:
                with pytest.raises(hamlyn.Malformed) as malformed:
                    channel.recv(WAIT)
                assert "the peer sent" in str(malformed.value), wrong
                assert channel.recv(WAIT) == b"good", wrong
            with pytest.raises(hamlyn.Closed):
                channel.recv(WAIT)


def on_a_manager() -> None:
    with hamlyn.open() as me, hamlyn.Channel.connect("alice/work", WAIT, manager=me) as channel:
        channel.send("over an item")
        assert channel.recv(WAIT) == "answer"


def test_channels_of_a_manager() -> None:
    with hamlyn.open("alice") as alice, running(on_a_manager) as peer:
        with hamlyn.Channel.bind("work", manager=alice) as channel:
            assert channel.recv(WAIT) == "over an item"
            assert channel.peer.process == peer.pid
            channel.send("answer")
        assert not alice.closed
        with pytest.raises(TypeError, match="open already"):
            hamlyn.Channel.bind("work", manager=alice, strategy="np")


BURSTS = [100, 1_000, 300]


def sends_and_waits_elsewhere(seen: Any) -> None:
    with hamlyn.Channel.connect("numbers", WAIT) as channel:
        for burst in BURSTS:
            for number in range(burst):
                channel.send(number.to_bytes(64, "little"))
            # Here nobody drives the channel.
            seen.recv_bytes()


def test_what_was_sent_arrives_though_its_sender_does_something_else() -> None:
    theirs, seen = multiprocessing.Pipe(duplex=False)
    # A short ring: what has no room in it waits at the sender.
    with hamlyn.Channel.bind("numbers", cells=2) as channel, running(sends_and_waits_elsewhere, theirs):
        for burst in BURSTS:
            for number in range(burst):
                assert channel.recv(WAIT) == number.to_bytes(64, "little")
            seen.send_bytes(b"seen")
