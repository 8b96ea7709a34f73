"""`Channel`: what it carries, what it refuses, and what a peer can do to it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import multiprocessing
import pathlib
import struct
import subprocess
import sys
import warnings
from typing import Any

import numpy
import pytest
from conftest import running

import hamlyn

WAIT = 60
# Those that this NumPy has.
DIMENSIONS = 64 if numpy.lib.NumpyVersion(numpy.__version__) >= "2.0.0" else 32


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
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        # Bytes between the fields are not compared.
        return bool((left == right).all()) if left.dtype.names else left.tobytes() == right.tobytes()
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
    numpy.zeros(2, numpy.dtype([("a", "i1"), ("b", "f8"), ("c", [("d", "i2"), ("e", "i8")], (2,))], align=True)),
    numpy.ones(2, numpy.dtype({"names": ["b", "a"], "formats": ["<i4", "i1"], "offsets": [8, 1], "itemsize": 20})),
    numpy.zeros(1, [(("title", "name"), "i4")]),
    numpy.zeros(3, "g"),
    numpy.ones((1,) * DIMENSIONS),
    [numpy.ones((1,) * DIMENSIONS)],
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
            ([numpy.array([object()])], "Python objects"),
            (memoryview(numpy.array([object()])), "addresses, not data"),
            (numpy.ma.masked_array([1, 2], mask=[0, 1]), "filled"),
            ([numpy.ma.masked_array([1, 2], mask=[0, 1])], "filled"),
            (numpy.ma.masked, "filled"),
            (numpy.zeros(2, [("a", "i4")]).view(numpy.recarray), "recarray"),
            (numpy.zeros(2, [("a", "i4")]).view(numpy.recarray)[0], "record"),
            (numpy.zeros(2, numpy.dtype((numpy.record, [("a", "i4")]))), "by type and bytes"),
            (numpy.zeros((2, 2)).view(numpy.matrix), "matrix"),
            (numpy.zeros(2, "V0"), "by type and bytes"),
            (numpy.zeros(2, []), "by type and bytes"),
            (type("Bytes", (bytes,), {})(b"x"), "not Bytes"),
            (type("List", (list,), {})(), "not List"),
            (type("Float", (numpy.float64,), {})(1), "Float"),
            ({1: {2}}, "not set"),
            (Point, "not type"),
        ]:
            with pytest.raises(TypeError, match=said):
                channel.send(wrong)
        with pytest.raises(hamlyn.TimedOut, match="nothing came"):
            channel.recv(0)
        for timeout in (-1, -0.001, float("nan")):
            for call in (channel.recv, lambda timeout: channel.send(b"", timeout), channel.close):
                with pytest.raises(ValueError, match="timeout is 0 seconds or more"):
                    call(timeout)
        for timeout in (True, "5", b"5", [5]):
            for call in (channel.recv, lambda timeout: channel.send(b"", timeout), channel.close):
                with pytest.raises(TypeError, match="number of seconds"):
                    call(timeout)
        # Nothing of it was sent.
        channel.send(b"still there")
        assert channel.recv(WAIT) == b"still there"
        with pytest.raises(TypeError, match="dataclasses"):
            channel.accept(int)


def sends_to_one_that_is_busy(pipe: Any) -> None:
    with hamlyn.Channel.connect("numbers", WAIT) as channel:
        kept = sent = 0
        while not kept:
            kept += not channel.send(b"x" * 1_500, timeout=0)
            sent += 1
        assert channel.poll() is False
        pipe.send(sent)
        # It has nothing more to say, and sends nothing: it only polls.
        while not channel.poll():
            pass
        assert pipe.recv() == sent
        # A wait for an answer sends the rest, too.
        while channel.send(b"y" * 1_500, timeout=0):
            pass
        pipe.send("second")
        assert channel.recv(WAIT) == "all"


def test_what_is_kept_is_told_and_goes_with_a_poll() -> None:
    mine, theirs = multiprocessing.Pipe()
    with hamlyn.Channel.bind("numbers", limit_bytes=1 << 20) as channel, running(sends_to_one_that_is_busy, theirs):
        sent = mine.recv()
        assert all(channel.recv(WAIT) == b"x" * 1_500 for _ in range(sent))
        mine.send(sent)
        assert mine.recv() == "second"
        with pytest.raises(hamlyn.TimedOut):
            while channel.recv(1) == b"y" * 1_500:
                pass
        channel.send("all", WAIT)


def fills(pipe: Any, how: str) -> None:
    channel = hamlyn.Channel.connect("numbers", WAIT)
    sent = 0
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with contextlib.suppress(KeyError), channel:
            while channel.send(b"x" * 1_500, timeout=0):
                sent += 1
            pipe.send(sent + 1)
            if how == "raises":
                raise KeyError
    pipe.send([str(warning.message) for warning in told])


@pytest.mark.parametrize("how", ["received", "never received", "raises"])
def test_the_end_of_a_with_loses_nothing_unsaid(how: str) -> None:
    mine, theirs = multiprocessing.Pipe()
    with hamlyn.Channel.bind("numbers", limit_bytes=1 << 20) as channel, running(fills, theirs, how):
        sent = mine.recv()
        if how == "received":
            assert all(channel.recv(WAIT) == b"x" * 1_500 for _ in range(sent))
            with pytest.raises(hamlyn.Closed):
                channel.recv(WAIT)
            assert mine.recv() == []
        else:
            (told,) = mine.recv()
            assert "ended with 1 objects" in told and "lost" in told


def test_a_close_that_is_too_short_loses_nothing() -> None:
    mine, theirs = multiprocessing.Pipe()
    with hamlyn.Channel.bind("numbers", limit_bytes=1 << 20) as channel, running(closes_twice, theirs):
        sent = mine.recv()
        assert all(channel.recv(WAIT) == b"x" * 1_500 for _ in range(sent))
        with pytest.raises(hamlyn.Closed):
            channel.recv(WAIT)


def closes_twice(pipe: Any) -> None:
    channel = hamlyn.Channel.connect("numbers", WAIT)
    sent = 1
    while channel.send(b"x" * 1_500, timeout=0):
        sent += 1
    with pytest.raises(hamlyn.TimedOut, match="close it again"):
        channel.close(0)
    pipe.send(sent)
    channel.close(WAIT)
    channel.close(0)


JOBS = """
import dataclasses, multiprocessing, sys
import hamlyn

@dataclasses.dataclass
class Job:
    number: int

def work():
    with hamlyn.Channel.connect("jobs", 60, classes=(Job,)) as channel:
        for job in channel:
            channel.send(Job(job.number ** 2))

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with hamlyn.Channel.bind("jobs", classes=(Job,)) as channel:
        worker = context.Process(target=work)
        worker.start()
        channel.send(Job(7), 60)
        print(channel.recv(60))
    worker.join()
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_classes_of_the_main_module(method: str, tmp_path: pathlib.Path) -> None:
    program = tmp_path / "jobs.py"
    program.write_text(JOBS)
    done = subprocess.run([sys.executable, str(program), method], capture_output=True, text=True, timeout=WAIT)
    assert done.stdout == "Job(number=49)\n", done.stderr


@dataclasses.dataclass
class Other:
    x: int


def sends_another_class() -> None:
    with hamlyn.Channel.connect("numbers", WAIT) as channel:
        channel.accept(Other, "number")
        channel.send(Other(5))
        assert channel.recv(WAIT) == Other(6)


def test_classes_of_another_name() -> None:
    with hamlyn.Channel.bind("numbers", classes=(Point,)) as channel, running(sends_another_class):
        channel.accept(Unknown, name="number")
        assert channel.recv(WAIT) == Unknown(5)
        channel.send(Unknown(6), WAIT)


def sending(value: Any) -> None:
    with hamlyn.Channel.connect("numbers", WAIT) as channel:
        channel.send(value)


def test_a_class_that_is_not_registered() -> None:
    with running(sending, Unknown(1)), hamlyn.Channel.bind("numbers") as channel:
        channel.accept(Point)
        with pytest.raises(hamlyn.Malformed, match="register it.*registered are: test_channel.Point"):
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
