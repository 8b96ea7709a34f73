"""Every argument of the stubs that is a buffer or a number refuses what it cannot be, by name."""

from __future__ import annotations

import array
import asyncio
import contextlib
import ctypes
import math
from typing import Any, Iterator

import numpy
import pytest
from stubs import Argument, World, arguments

import hamlyn


@pytest.fixture
def world() -> Iterator[World]:
    with contextlib.ExitStack() as stack:
        yield World(stack)


class Pointing(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int), ("inside", ctypes.c_void_p)]


class Around(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 4), ("inner", Pointing * 2)]


def pointers() -> dict[str, Any]:
    """Buffers whose bytes are addresses: who sends them shows them, and who receives into them has
    others choose them."""
    fields = numpy.dtype([("a", "i4"), ("b", "O")])
    found = {
        "objects": numpy.array(["text", None], dtype=object),
        "no objects": numpy.array([], dtype=object),
        "one object": numpy.array(None, dtype=object),
        "objects in fields": numpy.zeros(2, fields),
        "objects in fields of fields": numpy.zeros(2, [("a", "U2"), ("b", fields, (2,))]),
        "objects beside a type without a format": numpy.zeros(2, [("a", "M8[s]"), ("b", "O")]),
        "view of objects": memoryview(numpy.array([None, None], dtype=object)),
        "py_object": (ctypes.py_object * 2)(1, 2),
        "pointer": (ctypes.POINTER(ctypes.c_int) * 2)(),
        "void": (ctypes.c_void_p * 2)(),
        "char": (ctypes.c_char_p * 2)(),
        "wide": (ctypes.c_wchar_p * 2)(),
        "function": (ctypes.CFUNCTYPE(None) * 2)(),
        "structure": (Pointing * 2)(),
        "nested": (Around * 2)(),
        "view of a structure": memoryview((Pointing * 2)()),
    }
    with contextlib.suppress(AttributeError):
        found["strings"] = numpy.array(["a", "b" * 100], dtype=numpy.dtypes.StringDType())
    return found


def wrapped(argument: Argument, value: Any) -> Any:
    return [b"before", value] if argument.annotation.startswith("Iterable") else value


def test_buffers_of_addresses_are_refused_everywhere(world: World) -> None:
    walked = arguments("_Bytes")
    assert len(walked) > 40
    for argument in walked:
        for name, hostile in pointers().items():
            with pytest.raises(TypeError, match="addresses, not data"):
                world.call(argument, wrapped(argument, hostile))
                pytest.fail(f"{argument} takes {name}")
    with pytest.raises(TypeError, match="addresses, not data"):
        hamlyn.OutgoingMessage(pointers()["objects"])


PLAIN: list[Any] = [
    b"",
    bytearray(b"abc"),
    memoryview(b"abcd").cast("H"),
    array.array("d", [1.5]),
    (ctypes.c_int * 3)(1, 2, 3),
    ctypes.c_double(1.5),
    numpy.float64(1.5),
    numpy.arange(6).reshape(2, 3),
    numpy.array(5),
    numpy.array([1 + 2j], "c8"),
    numpy.array([1 + 2j], "G"),
    numpy.array([1.5], "f2"),
    numpy.array([True]),
    numpy.array(["2020-01-02", "NaT"], "M8[D]"),
    numpy.array([5], "m8[s]"),
    numpy.array([b"ab", b"c"]),
    numpy.array(["\u00e9", "O&P"]),
    numpy.array([b"raw"], "V3"),
    numpy.array([(1, 2.5)], [("O", ">i4"), ("P&", "<f8")]),
    numpy.zeros(2, numpy.dtype([("a", "i1"), ("b", "M8[s]"), ("c", [("d", "f8", (2, 2))])], align=True)),
]


@pytest.mark.parametrize("plain", PLAIN, ids=[str(number) for number in range(len(PLAIN))])
def test_buffers_of_data_are_taken(plain: Any) -> None:
    with hamlyn.open() as me:
        area = me.interface.allocate(4096)
        area.write(0, plain)
        expected = plain.tobytes() if hasattr(plain, "tobytes") else bytes(plain)
        assert area.read(0, len(expected)) == expected
        if isinstance(plain, (numpy.ndarray, bytearray)):
            into = plain.copy()
            area.write(0, bytes(len(expected)))
            area.read_into(into)
            assert (into.tobytes() if hasattr(into, "tobytes") else bytes(into)) == bytes(len(expected))


def test_tasks_take_what_calls_take() -> None:
    async def send(plain: Any) -> None:
        expected = plain.tobytes() if hasattr(plain, "tobytes") else bytes(plain)
        with hamlyn.open("alice") as alice, hamlyn.open() as me:
            group, frames = alice.bind_group("whole", 4096), alice.bind_publisher("frames", message_bytes=4096)
            group.begin_shared([4096])
            reader = me.connect_subscriber("alice/frames", 60)
            assert reader.recv(0) is None
            assert frames.await_readers(1, 60) == 1
            await me.connect_group("alice/whole", 60).send_last_async(0, plain)
            await frames.publish_async(plain)
            assert (await group.recv_async()).tobytes()[: len(expected)] == expected
            assert (await reader.recv_async()).tobytes() == expected

    for plain in PLAIN:
        asyncio.run(send(plain))


# Words of memory have a sign or not, as the program likes.
SIGNED = {"operand", "expected", "new"}
CONTAINERS = {
    "Iterable[int]": lambda value: [value],
    "Optional[Iterable[int]]": lambda value: [value],
    "Sequence[int]": lambda value: [8, value],
    "tuple[int, int, int]": lambda value: (0, 0, value),
    "Sequence[tuple[int, int, int]]": lambda value: [(0, 0, 8), (value, 0, 8)],
}


def test_numbers_are_refused_by_name_and_range(world: World) -> None:
    walked = [argument for argument in arguments("int", "float") if argument.name != "pieces" or argument.annotation != "range"]
    assert len(walked) > 150
    for argument in walked:
        is_float = "float" in argument.annotation
        wrap = CONTAINERS.get(argument.annotation, lambda value: value)
        negative = -(1 << 64) if argument.name in SIGNED else -1
        for wrong in (negative, 1 << 64, 1 << 200, -(1 << 200)):
            if is_float and argument.annotation != "Union[int, float]":
                continue
            with pytest.raises(hamlyn.Invalid, match=rf"\b{argument.name} is an int from -?\d+ to \d+, not ") as told:
                world.call(argument, wrap(wrong))
                pytest.fail(f"{argument} takes {wrong}")
            assert len(str(told.value)) < 200
        if is_float and argument.annotation != "Union[int, float]":
            with pytest.raises(ValueError, match=rf"\b{argument.name} is a float"):
                world.call(argument, 1 << 2000)
        others: list[Any] = [True, numpy.True_, "5", b"5", [5], 5j]
        others += [] if is_float else [1.5, numpy.float64(1)]
        others += [] if argument.annotation.startswith("Optional") and wrap(5) == 5 else [None]
        for wrong in others:
            kind = "float" if is_float and argument.annotation != "Union[int, float]" else "int"
            with pytest.raises(TypeError, match=rf"\b{argument.name} is an? {kind}.*, not {type(wrong).__name__}"):
                world.call(argument, wrap(wrong))
                pytest.fail(f"{argument} takes {wrong!r}")
        # A number of NumPy is one.
        if argument.name == "offset":
            with contextlib.suppress(hamlyn.Error, IndexError, BufferError):
                world.call(argument, numpy.int64(0))


def test_timeouts_are_refused_by_name(world: World) -> None:
    walked = arguments("_Timeout")
    assert len(walked) > 70
    for argument in walked:
        for wrong in (-1, -0.001, math.nan, -math.inf, -(1 << 200), -(1 << 2000)):
            with pytest.raises(ValueError, match="timeout is 0 seconds or more"):
                world.call(argument, wrong)
                pytest.fail(f"{argument} takes {wrong}")
        for wrong in (True, numpy.True_, "5", b"5", [5], 5j):
            with pytest.raises(TypeError, match="timeout is a number of seconds"):
                world.call(argument, wrong)
                pytest.fail(f"{argument} takes {wrong!r}")
