"""Frames of a `Channel`: an object taken apart into what JSON has and buffers, and put together again. What a peer says is checked before it is
used.

A frame is one record of a stream, or two: a head of 16 bytes, the structure, and the buffers, each at a multiple of 64 bytes. A long buffer
that is alone is a record of its own, so that it is sent from where it lies.
"""

from __future__ import annotations

import dataclasses
import struct
import sys
from typing import Any

from .errors import Invalid, Malformed

VERSION = 1
# Mark, version, kind, number of buffers, bytes of the structure.
HEAD = struct.Struct("<2sBBIQ")
MARK = b"hC"
# Kinds of frames: bytes that follow, or are the next record; a structure with buffers, or its buffer in the next record; a pickle; an array
# alone, whose structure is its type, and whose "buffers" are the lengths of its shape.
BYTES, BYTES_APART, OBJECT, OBJECT_APART, PICKLE, PICKLE_APART, ARRAY, ARRAY_APART, HELLO = range(9)
_ALIGNMENT = 64
# A lone buffer from this length on is sent from where it lies.
APART_BYTES = 2048
# Frames with more buffers, or a longer structure, are refused.
BUFFERS_MAX = 1 << 20
# Heads of arrays that were sent or received lately; forgotten together when there are so many.
_HEADS_MAX = 256
_heads_sent: dict[Any, bytes] = {}
_heads_received: dict[bytes, Any] = {}
_KEY = "\x00"


def numpy_if_imported() -> Any:
    """NumPy, if the program has imported it."""
    return sys.modules.get("numpy")


def padding_after(length: int) -> int:
    return -length % _ALIGNMENT


class Writer:
    """Takes an object apart, into what JSON has and buffers."""

    def __init__(self) -> None:
        self.buffers: list[memoryview] = []

    def take(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is str or kind is int or kind is float:
            return value
        if kind is list:
            return [self.take(item) for item in value]
        if kind is tuple:
            return {_KEY: "tuple", "items": [self.take(item) for item in value]}
        if kind is dict:
            return self.take_dict(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return {_KEY: "bytearray" if kind is bytearray else "bytes", "at": self.add(value)}
        numpy = numpy_if_imported()
        if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
            return self.take_array(numpy, value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: self.take(getattr(value, field.name)) for field in dataclasses.fields(value)}
            return {_KEY: "dataclass", "name": name_of(kind), "fields": fields}
        raise TypeError(
            f"a channel carries None, bool, int, float, str, bytes, arrays of NumPy, list, tuple, dict and dataclasses; not {kind.__name__}: "
            "send one of these, or send it with pickle=True to a receiver that allows that"
        )

    def take_dict(self, value: dict[Any, Any]) -> Any:
        if all(type(key) is str for key in value) and _KEY not in value:
            return {key: self.take(item) for key, item in value.items()}
        return {_KEY: "dict", "items": [[self.take(key), self.take(item)] for key, item in value.items()]}

    def take_array(self, numpy: Any, value: Any) -> Any:
        array = numpy.asarray(value)
        if array.dtype.hasobject:
            raise TypeError(
                "an array of Python objects cannot be sent as bytes: give it a dtype of numbers, or send it with pickle=True to a receiver "
                "that allows that"
            )
        is_scalar = isinstance(value, numpy.generic)
        at = self.add(numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8) if array.size else b"")
        return {_KEY: "scalar" if is_scalar else "array", "type": describe(array.dtype), "shape": list(array.shape), "at": at}

    def add(self, buffer: Any) -> int:
        view = memoryview(buffer)
        if not view.contiguous:
            view = memoryview(view.tobytes())
        self.buffers.append(view.cast("B") if view.nbytes else memoryview(b""))
        return len(self.buffers) - 1


def describe(dtype: Any) -> Any:
    """A type, as JSON has it: a text, or the fields of a structured one."""
    return dtype.descr if dtype.names else dtype.str


def name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def head_of(array: Any) -> bytes:
    """The head of an array alone, so long that its bytes begin at a multiple of 64."""
    dtype, shape = array.dtype, array.shape
    head = _heads_sent.get((dtype, shape))
    if head is None:
        text = dtype.str.encode()
        head = HEAD.pack(MARK, VERSION, ARRAY, len(shape), len(text)) + struct.pack(f"<{len(shape)}Q", *shape) + text
        head += bytes(padding_after(len(head)))
        if len(_heads_sent) >= _HEADS_MAX:
            _heads_sent.clear()
        _heads_sent[dtype, shape] = head
    return head


def shape_of(head: bytes, lengths: int, text_bytes: int) -> Any:
    """The type and the shape that a head of an array says, checked; and how many bytes there must be."""
    known = _heads_received.get(head)
    if known is None:
        shape = struct.unpack_from(f"<{lengths}Q", head, HEAD.size)
        at = HEAD.size + 8 * lengths
        text = head[at : at + text_bytes].decode("ascii", "replace")
        dtype = _type_of(text)
        count = 1
        for length in shape:
            count *= length
        if lengths > 32:
            raise Malformed(f"the peer sent an array of {lengths} dimensions, which no array has")
        known = dtype, shape, count * dtype.itemsize
        if len(_heads_received) >= _HEADS_MAX:
            _heads_received.clear()
        _heads_received[head] = known
    return known


def _type_of(described: Any) -> Any:
    """A type that a peer says."""
    try:
        dtype = _import_numpy().dtype(fields_of(described) if isinstance(described, list) else described)
    except (TypeError, ValueError, SyntaxError, RecursionError):
        raise Malformed(f"the peer sent an array of the type {described!r}, which is none") from None
    if dtype.hasobject or dtype.itemsize == 0:
        raise Malformed(f"the peer sent an array of the type {described!r}, which no channel sends")
    return dtype


def array_of(dtype: Any, shape: Any, needed: int, buffer: Any, copy: bool) -> Any:
    """An array over a buffer, or a copy of it."""
    numpy = _import_numpy()
    if needed != len(buffer):
        raise Malformed(f"the peer sent an array of {dtype} and shape {shape!r} with {len(buffer)} bytes, which do not fit together")
    try:
        if not needed:
            return numpy.empty(shape, dtype)
        array = numpy.frombuffer(buffer, dtype).reshape(shape)
    except ValueError as error:
        raise Malformed(f"the peer sent an array of {dtype} and shape {shape!r}, which cannot be made: {error}") from None
    return array.copy() if copy else array


class Reader:
    """Puts an object together again. What the peer says is checked before it is used."""

    def __init__(self, buffers: list[memoryview], classes: dict[str, type], is_copied: bool) -> None:
        self.buffers = buffers
        self.classes = classes
        self.is_copied = is_copied

    def put(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.put(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value.get(_KEY)
        if kind is None:
            return {key: self.put(item) for key, item in value.items()}
        if kind == "tuple":
            return tuple(self.put(item) for item in _of_type(value, "items", list))
        if kind == "dict":
            return self.put_dict(_of_type(value, "items", list))
        if kind in ("bytes", "bytearray"):
            buffer = self.buffer(value)
            return bytearray(buffer) if kind == "bytearray" else bytes(buffer)
        if kind in ("array", "scalar"):
            return self.put_array(value, kind == "scalar")
        if kind == "dataclass":
            return self.put_dataclass(value)
        raise Malformed(f"the peer sent an object of the kind {kind!r}, which no channel of this version sends: update the older program")

    def put_dict(self, items: list[Any]) -> dict[Any, Any]:
        try:
            return {self.put(key): self.put(item) for key, item in items}
        except (TypeError, ValueError):
            raise Malformed("the peer sent a dictionary whose items are no pairs, or whose keys cannot be keys") from None

    def put_array(self, value: dict[str, Any], is_scalar: bool) -> Any:
        shape = _of_type(value, "shape", list)
        described = value.get("type")
        if not isinstance(described, (str, list)):
            raise Malformed(f"the peer sent an array of the type {described!r}, which is none")
        dtype = _type_of(described)
        needed = dtype.itemsize
        for length in shape:
            if type(length) is not int or length < 0:
                raise Malformed(f"the peer sent an array of the shape {shape!r}, which is none")
            needed *= length
        if len(shape) > 32:
            raise Malformed(f"the peer sent an array of {len(shape)} dimensions, which no array has")
        array = array_of(dtype, shape, needed, self.buffer(value), self.is_copied or is_scalar)
        return array[()] if is_scalar else array

    def put_dataclass(self, value: dict[str, Any]) -> Any:
        name = _of_type(value, "name", str)
        kind = self.classes.get(name)
        if kind is None:
            raise Malformed(f"the peer sent a dataclass {name!r} that this channel does not accept: register it, `channel.accept(...)`")
        fields = _of_type(value, "fields", dict)
        known = {field.name: field for field in dataclasses.fields(kind)}
        if not fields.keys() <= known.keys():
            raise Malformed(f"the peer sent fields of {name!r} that it does not have: {sorted(fields.keys() - known.keys())}")
        values = {key: self.put(item) for key, item in fields.items()}
        try:
            made = kind(**{key: item for key, item in values.items() if known[key].init})
        except TypeError as error:
            raise Malformed(f"the peer sent a {name!r} that cannot be made of its fields: {error}") from error
        for key, item in values.items():
            if not known[key].init:
                object.__setattr__(made, key, item)
        return made

    def buffer(self, value: dict[str, Any]) -> memoryview:
        at = _of_type(value, "at", int)
        if not 0 <= at < len(self.buffers):
            raise Malformed("the peer sent an object with a buffer that is not there")
        buffer: memoryview = self.buffers[at]
        return buffer


def _of_type(value: dict[str, Any], key: str, kind: type) -> Any:
    item = value.get(key)
    if type(item) is not kind:
        raise Malformed(f"the peer sent an object whose {key!r} is not of the type {kind.__name__}")
    return item


def fields_of(described: list[Any]) -> list[Any]:
    """The fields of a structured type, from JSON."""
    fields = []
    for field in described:
        if not isinstance(field, list) or len(field) not in (2, 3):
            raise TypeError("a field is a name, a type, and perhaps a shape")
        kind = fields_of(field[1]) if isinstance(field[1], list) else field[1]
        name = tuple(field[0]) if isinstance(field[0], list) else field[0]
        fields.append((name, kind, *(tuple(shape) for shape in field[2:])))
    return fields


def _import_numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise Invalid("the peer sent an array, and NumPy is not installed here: install it (pip install numpy)") from None
    return numpy


def frame_of(structure: bytes, buffers: list[memoryview]) -> bytes:
    """A frame with its buffers: after the structure their lengths, then each at a multiple of 64 bytes from the beginning."""
    parts = [HEAD.pack(MARK, VERSION, OBJECT, len(buffers), len(structure)), structure]
    at = HEAD.size + len(structure) + 8 * len(buffers)
    parts.append(struct.pack(f"<{len(buffers)}Q", *(len(buffer) for buffer in buffers)))
    for buffer in buffers:
        padding = padding_after(at)
        parts.append(bytes(padding))
        parts.append(buffer)  # type: ignore[arg-type]
        at += padding + len(buffer)
    return b"".join(parts)


def buffers_of(view: memoryview, at: int, count: int) -> list[memoryview]:
    """The buffers of a frame, whose lengths begin there."""
    if at + 8 * count > len(view):
        raise Malformed("the peer sent a frame that is cut")
    lengths = struct.unpack_from(f"<{count}Q", view, at)
    at += 8 * count
    buffers = []
    for length in lengths:
        at += padding_after(at)
        if at + length > len(view):
            raise Malformed("the peer sent a frame that is cut")
        buffers.append(view[at : at + length])
        at += length
    view.release()
    return buffers
