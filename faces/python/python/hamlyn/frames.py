"""Frames of a `Channel`: an object taken apart into what JSON has and buffers, and put together again. What a peer says is checked before it is
used.

A frame is one record of a stream, or two: a head of 16 bytes, the structure, and the buffers, each at a multiple of 64 bytes. A long buffer
that is alone is a record of its own, so that it is sent from where it lies.
"""

from __future__ import annotations

import dataclasses
import json
import re
import struct
import sys
from typing import Any, Optional

from ._hamlyn import OutgoingMessage
from .dtypes import DIMENSIONS_MAX, TEXT_MAX, bytes_of_shape, data_of, describe, holds_addresses, import_numpy, octets, shown, type_of
from .errors import Malformed, TooLong

VERSION = 1
# Mark, version, kind, number of buffers, bytes of the structure.
HEAD = struct.Struct("<2sBBIQ")
_LENGTH = struct.Struct("<Q")
MARK = b"hC"
# Kinds of frames: bytes that follow, or are the next record; a structure with buffers, or its buffer in the next record; a pickle; an array
# alone, whose structure is its type, and whose "buffers" are the lengths of its shape.
BYTES, BYTES_APART, OBJECT, OBJECT_APART, PICKLE, PICKLE_APART, ARRAY, ARRAY_APART, HELLO = range(9)
_ALIGNMENT = 64
# A lone buffer from this length on is sent from where it lies.
APART_BYTES = 2048
# Structures of more parts, or more that lie in one another, are neither sent nor taken: a part of
# two bytes is an object of eighty.
PARTS_MAX = 1 << 21
DEPTH_MAX = 200
# Keys of one hash, beyond chance, make a dictionary slow.
_COLLISIONS_MAX = 64
# Heads of arrays that were sent or received lately, if they are short; forgotten together when
# there are so many.
_HEADS_MAX = 256
_HEAD_BYTES_MAX = 256
_heads_sent: dict[Any, bytes] = {}
_heads_received: dict[bytes, Any] = {}
_KEY = "\x00"


def numpy_if_imported() -> Any:
    """NumPy, if the program has imported it."""
    return sys.modules.get("numpy")


def padding_after(length: int) -> int:
    return -length % _ALIGNMENT


def is_array(numpy: Any, value: Any) -> bool:
    """Returns True for an array or a scalar of NumPy. TypeError if it is one with more to it than
    type, shape and bytes."""
    kind = type(value)
    if kind is numpy.ndarray or isinstance(value, numpy.generic) and kind is value.dtype.type and kind is not numpy.record:
        return True
    if isinstance(value, numpy.ma.MaskedArray):
        raise TypeError("a masked array is not sent, for its mask would be lost: send array.filled(...), or array.data and array.mask")
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        raise TypeError(f"a {kind.__name__} is not sent, for it would arrive as a plain array: send numpy.array(...) of it")
    return False


class Writer:
    """Takes an object apart, into what JSON has and buffers."""

    def __init__(self, names: dict[type, str]) -> None:
        self.buffers: list[memoryview] = []
        self.names = names
        self.depth = 0

    def structure_of(self, value: Any) -> bytes:
        structure = json.dumps(self.take(value), separators=(",", ":")).encode()
        if is_too_much(structure):
            raise TooLong(f"an object of more than {PARTS_MAX} parts is not sent: send its numbers as an array of NumPy")
        return structure

    def take(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is str or kind is int or kind is float:
            return value
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise TooLong(f"an object in which more than {DEPTH_MAX} lie in one another is not sent: make it flat")
        taken = self.take_whole(kind, value)
        self.depth -= 1
        return taken

    def take_whole(self, kind: type, value: Any) -> Any:
        if kind is list:
            return [self.take(item) for item in value]
        if kind is tuple:
            return {_KEY: "tuple", "items": [self.take(item) for item in value]}
        if kind is dict:
            return self.take_dict(value)
        if kind is bytes or kind is bytearray or kind is memoryview:
            return {_KEY: "bytearray" if kind is bytearray else "bytes", "at": self.add(value)}
        numpy = numpy_if_imported()
        if numpy is not None and is_array(numpy, value):
            return self.take_array(numpy, value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: self.take(getattr(value, field.name)) for field in dataclasses.fields(value)}
            return {_KEY: "dataclass", "name": self.names.get(kind) or name_of(kind), "fields": fields}
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
        refuse_objects(array.dtype)
        is_scalar = isinstance(value, numpy.generic)
        described = describe(array.dtype)
        return {_KEY: "scalar" if is_scalar else "array", "type": described, "shape": list(array.shape), "at": self.add(data_of(array))}

    def add(self, buffer: Any) -> int:
        view = memoryview(buffer)
        if view.format not in ("B", "b", "c"):
            # Addresses are refused, as by every call that sends.
            OutgoingMessage(view)
        self.buffers.append(octets(view if view.c_contiguous else view.tobytes()))
        return len(self.buffers) - 1


def is_too_much(structure: bytes) -> bool:
    """Returns True if a structure has more parts than a receiver takes."""
    if len(structure) <= PARTS_MAX or _parts_of(structure) <= PARTS_MAX:
        return False
    return _parts_of(_TEXT.sub(b"", structure)) > PARTS_MAX


def _parts_of(structure: bytes) -> int:
    return structure.count(b",") + structure.count(b"[") + structure.count(b"{")


_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def refuse_objects(dtype: Any) -> None:
    if holds_addresses(dtype):
        raise TypeError(
            "an array of Python objects cannot be sent as bytes: give it a dtype of numbers, or send it with pickle=True to a receiver "
            "that allows that"
        )


def name_of(kind: type) -> str:
    """Returns the name of a dataclass. A child of `multiprocessing` has the main module as
    another."""
    return main_name(f"{kind.__module__}.{kind.__qualname__}")


def main_name(name: str) -> str:
    return "__main__." + name[len("__mp_main__.") :] if name.startswith("__mp_main__.") else name


def head_of(array: Any) -> bytes:
    """The head of an array alone, so long that its bytes begin at a multiple of 64."""
    dtype, shape = array.dtype, array.shape
    head = _heads_sent.get((dtype, shape))
    if head is None:
        text = describe(dtype).encode()
        head = HEAD.pack(MARK, VERSION, ARRAY, len(shape), len(text)) + struct.pack(f"<{len(shape)}Q", *shape) + text
        head += bytes(padding_after(len(head)))
        if len(_heads_sent) >= _HEADS_MAX:
            _heads_sent.clear()
        _heads_sent[dtype, shape] = head
    return head


def head_length(lengths: int, text_bytes: int) -> int:
    """Returns the length of an array's head, from its dimensions and its type's length."""
    if lengths > DIMENSIONS_MAX or text_bytes > TEXT_MAX:
        raise Malformed(f"the peer sent an array of {lengths} dimensions, or of a type of {text_bytes} bytes, which no array has")
    length = HEAD.size + 8 * lengths + text_bytes
    return length + padding_after(length)


def shape_of(head: bytes, lengths: int, text_bytes: int) -> Any:
    """The type and the shape that a head of an array says, checked; and how many bytes there must be."""
    known = _heads_received.get(head)
    if known is None:
        if len(head) < head_length(lengths, text_bytes):
            raise Malformed("the peer sent a frame that is cut")
        shape = struct.unpack_from(f"<{lengths}Q", head, HEAD.size)
        at = HEAD.size + 8 * lengths
        dtype = type_of(head[at : at + text_bytes].decode("ascii", "replace"))
        known = dtype, shape, _bytes_of_shape(shape, dtype.itemsize)
        if len(head) <= _HEAD_BYTES_MAX:
            if len(_heads_received) >= _HEADS_MAX:
                _heads_received.clear()
            _heads_received[head] = known
    return known


def _bytes_of_shape(shape: Any, item_bytes: int) -> int:
    try:
        return bytes_of_shape(shape, item_bytes)
    except ValueError as error:
        raise Malformed(f"the peer sent an array of {error}") from None


def array_of(dtype: Any, shape: Any, needed: int, buffer: Any, copy: bool) -> Any:
    """An array over a buffer, or a copy of it."""
    numpy = import_numpy()
    if needed != len(buffer):
        raise Malformed(f"the peer sent an array of {shown(dtype)} and shape {shown(shape)} with {len(buffer)} bytes, which do not fit together")
    try:
        if not needed:
            return numpy.empty(shape, dtype)
        array = numpy.frombuffer(buffer, dtype).reshape(shape)
    except ValueError as error:
        raise Malformed(f"the peer sent an array of {shown(dtype)} and shape {shown(shape)}, which cannot be made: {error}") from None
    return array.copy() if copy else array


class Reader:
    """Puts an object together again. What the peer says is checked before it is used."""

    def __init__(self, buffers: Buffers, classes: dict[str, type], is_copied: bool) -> None:
        self.buffers = buffers
        self.classes = classes
        self.is_copied = is_copied
        self.depth = 0

    def read(self, structure: bytes) -> Any:
        """The object of a structure, of which every buffer is a part, once."""
        if is_too_much(structure):
            raise Malformed(f"the peer sent a structure of more than {PARTS_MAX} parts, which no channel sends")
        if self.buffers.count > structure.count(b'"at"'):
            raise Malformed("the peer sent buffers that no object has")
        value = self.put(_loads(structure))
        if self.buffers.taken != self.buffers.count:
            raise Malformed("the peer sent buffers that no object has")
        return value

    def put(self, value: Any) -> Any:
        kind = type(value)
        if kind is not list and kind is not dict:
            return value
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise Malformed(f"the peer sent an object in which more than {DEPTH_MAX} lie in one another, which no channel sends")
        if kind is list:
            # In place: a hostile list is long enough once.
            for number, item in enumerate(value):
                value[number] = self.put(item)
            made = value
        else:
            made = self.put_named(value)
        self.depth -= 1
        return made

    def put_named(self, value: dict[str, Any]) -> Any:
        kind = value.get(_KEY)
        if kind is None:
            for key, item in value.items():
                value[key] = self.put(item)
            return value
        if kind == "tuple":
            return tuple(self.put(_of_type(value, "items", list)))
        if kind == "dict":
            return self.put_dict(_of_type(value, "items", list))
        if kind == "bytes":
            return bytes(self.buffer(value))
        if kind == "bytearray":
            return bytearray(self.buffer(value))
        if kind == "array" or kind == "scalar":
            return self.put_array(value, kind == "scalar")
        if kind == "dataclass":
            return self.put_dataclass(value)
        raise Malformed(f"the peer sent an object of the kind {shown(kind)}, which no channel of this version sends: update the older program")

    def put_dict(self, items: list[Any]) -> dict[Any, Any]:
        try:
            pairs = [(self.put(key), self.put(item)) for key, item in items]
            hashes = {hash(key) for key, _ in pairs}
        except (TypeError, ValueError):
            raise Malformed("the peer sent a dictionary whose items are no pairs, or whose keys cannot be keys") from None
        if len(pairs) - len(hashes) > _COLLISIONS_MAX:
            raise Malformed("the peer sent a dictionary of keys that collide")
        return dict(pairs)

    def put_array(self, value: dict[str, Any], is_scalar: bool) -> Any:
        shape = _of_type(value, "shape", list)
        dtype = type_of(value.get("type"))
        needed = _bytes_of_shape(shape, dtype.itemsize)
        array = array_of(dtype, shape, needed, self.buffer(value), self.is_copied or is_scalar)
        return array[()] if is_scalar else array

    def put_dataclass(self, value: dict[str, Any]) -> Any:
        name = main_name(_of_type(value, "name", str))
        kind = self.classes.get(name)
        if kind is None:
            known = ", ".join(sorted(self.classes)) or "none"
            raise Malformed(
                f"the peer sent a dataclass {shown(name)} that this channel does not accept: register it, `channel.accept(...)`, under that "
                f"name if the class has another here; registered are: {known}"
            )
        fields = _of_type(value, "fields", dict)
        known_fields = {field.name: field for field in dataclasses.fields(kind)}
        if not fields.keys() <= known_fields.keys():
            raise Malformed(f"the peer sent fields of {name!r} that it does not have: {shown(sorted(fields.keys() - known_fields.keys()))}")
        values = {key: self.put(item) for key, item in fields.items()}
        try:
            made = kind(**{key: item for key, item in values.items() if known_fields[key].init})
        except TypeError as error:
            raise Malformed(f"the peer sent a {name!r} that cannot be made of its fields: {error}") from error
        for key, item in values.items():
            if not known_fields[key].init:
                object.__setattr__(made, key, item)
        return made

    def buffer(self, value: dict[str, Any]) -> memoryview:
        if _of_type(value, "at", int) != self.buffers.taken:
            raise Malformed("the peer sent an object with a buffer that is not there, or not the next one")
        return self.buffers.take()


def _loads(structure: bytes) -> Any:
    # Digits take quadratic time, which the interpreter bounds if nobody has told it otherwise.
    is_bounded = getattr(sys, "get_int_max_str_digits", int)() > 0
    return json.loads(structure) if is_bounded else json.loads(structure, parse_int=_bounded_int)


def _bounded_int(digits: str) -> int:
    if len(digits) > 4300:
        raise ValueError("a number of too many digits")
    return int(digits)


def _of_type(value: dict[str, Any], key: str, kind: type) -> Any:
    item = value.get(key)
    if type(item) is not kind:
        raise Malformed(f"the peer sent an object whose {key!r} is not of the type {kind.__name__}")
    return item


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


class Buffers:
    """The buffers of a frame, which are taken in order, so that none is there twice: those of
    hostile frames cost nothing until then."""

    def __init__(self, count: int, view: Optional[memoryview], at: int) -> None:
        self.count = count
        self.taken = 0
        self._view = view
        self._lengths_at = at
        self._at = at + 8 * count
        if view is not None and self._at > len(view):
            raise Malformed("the peer sent a frame that is cut")

    @classmethod
    def alone(cls, view: memoryview) -> Buffers:
        """The one that is a record of its own."""
        buffers = cls(1, None, -1)
        buffers._view = view
        return buffers

    def take(self) -> memoryview:
        view = self._view
        if view is None or self.taken >= self.count:
            raise Malformed("the peer sent an object with a buffer that is not there")
        if self._lengths_at < 0:
            self.taken += 1
            return view
        (length,) = _LENGTH.unpack_from(view, self._lengths_at + 8 * self.taken)
        self.taken += 1
        begin = self._at + padding_after(self._at)
        if begin + length > len(view):
            raise Malformed("the peer sent a frame that is cut")
        self._at = begin + length
        return view[begin : self._at]
