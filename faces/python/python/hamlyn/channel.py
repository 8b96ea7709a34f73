"""`Channel`: objects between two processes, as simply as with `multiprocessing.Pipe`, across hosts too, by name.

What it carries: None, bools, ints, floats, texts, bytes and other buffers, arrays of NumPy, lists, tuples, dictionaries, and dataclasses
that the receiver has registered. The structure travels as JSON, buffers beside it as they are: an array is a type, a shape and its bytes.
Nothing that a peer sends is unpickled, unless the program asks for it, for then the peer can have it do anything.

A frame is one record of a stream, or two: a head of 16 bytes, the structure, and the buffers, each at a multiple of 64 bytes. A long buffer
that is alone is a record of its own, so that it is sent from where it lies.
"""

from __future__ import annotations

import dataclasses
import json
import pickle
import struct
import sys
from typing import TYPE_CHECKING, Any, Iterator, Optional

from . import _hamlyn
from .errors import Closed, Cut, Error, Invalid, Malformed, PeerGone, TimedOut

if TYPE_CHECKING:
    from types import TracebackType

    from ._hamlyn import Manager, Message, Peer

_VERSION = 1
# Mark, version, kind, number of buffers, bytes of the structure.
_HEAD = struct.Struct("<2sBBIQ")
_MARK = b"hC"
# Kinds of frames: bytes that follow, or are the next record; a structure with buffers, or its buffer in the next record; a pickle; an array
# alone, whose structure is its type, and whose "buffers" are the lengths of its shape.
_BYTES, _BYTES_APART, _OBJECT, _OBJECT_APART, _PICKLE, _PICKLE_APART, _ARRAY, _ARRAY_APART, _HELLO = range(9)
_ALIGNMENT = 64
# A lone buffer from this length on is sent from where it lies.
_APART_BYTES = 2048
# Frames with more buffers, or a longer structure, are refused.
_BUFFERS_MAX = 1 << 20
# Heads of arrays that were sent or received lately; forgotten together when there are so many.
_HEADS_MAX = 256
_heads_sent: dict[Any, bytes] = {}
_heads_received: dict[bytes, Any] = {}
_KEY = "\x00"
_ITEM = "channel"
# For the way back, to an end that has just greeted.
_CONNECT_SECONDS = 10


def _numpy() -> Any:
    """NumPy, if the program has imported it."""
    return sys.modules.get("numpy")


def _padding(length: int) -> int:
    return -length % _ALIGNMENT


class _Writer:
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
        numpy = _numpy()
        if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
            return self.take_array(numpy, value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: self.take(getattr(value, field.name)) for field in dataclasses.fields(value)}
            return {_KEY: "dataclass", "name": _name_of(kind), "fields": fields}
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
        return {_KEY: "scalar" if is_scalar else "array", "type": _describe(array.dtype), "shape": list(array.shape), "at": at}

    def add(self, buffer: Any) -> int:
        view = memoryview(buffer)
        if not view.contiguous:
            view = memoryview(view.tobytes())
        self.buffers.append(view.cast("B") if view.nbytes else memoryview(b""))
        return len(self.buffers) - 1


def _describe(dtype: Any) -> Any:
    """A type, as JSON has it: a text, or the fields of a structured one."""
    return dtype.descr if dtype.names else dtype.str


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _head_of(array: Any) -> bytes:
    """The head of an array alone, so long that its bytes begin at a multiple of 64."""
    dtype, shape = array.dtype, array.shape
    head = _heads_sent.get((dtype, shape))
    if head is None:
        text = dtype.str.encode()
        head = _HEAD.pack(_MARK, _VERSION, _ARRAY, len(shape), len(text)) + struct.pack(f"<{len(shape)}Q", *shape) + text
        head += bytes(_padding(len(head)))
        if len(_heads_sent) >= _HEADS_MAX:
            _heads_sent.clear()
        _heads_sent[dtype, shape] = head
    return head


def _shape_of(head: bytes, lengths: int, text_bytes: int) -> Any:
    """The type and the shape that a head of an array says, checked; and how many bytes there must be."""
    known = _heads_received.get(head)
    if known is None:
        shape = struct.unpack_from(f"<{lengths}Q", head, _HEAD.size)
        at = _HEAD.size + 8 * lengths
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
        dtype = _import_numpy().dtype(_fields(described) if isinstance(described, list) else described)
    except (TypeError, ValueError, SyntaxError, RecursionError):
        raise Malformed(f"the peer sent an array of the type {described!r}, which is none") from None
    if dtype.hasobject or dtype.itemsize == 0:
        raise Malformed(f"the peer sent an array of the type {described!r}, which no channel sends")
    return dtype


def _array_of(dtype: Any, shape: Any, needed: int, buffer: Any, copy: bool) -> Any:
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


class _Reader:
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
        array = _array_of(dtype, shape, needed, self.buffer(value), self.is_copied or is_scalar)
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


def _fields(described: list[Any]) -> list[Any]:
    """The fields of a structured type, from JSON."""
    fields = []
    for field in described:
        if not isinstance(field, list) or len(field) not in (2, 3):
            raise TypeError("a field is a name, a type, and perhaps a shape")
        kind = _fields(field[1]) if isinstance(field[1], list) else field[1]
        name = tuple(field[0]) if isinstance(field[0], list) else field[0]
        fields.append((name, kind, *(tuple(shape) for shape in field[2:])))
    return fields


def _import_numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise Invalid("the peer sent an array, and NumPy is not installed here: install it (pip install numpy)") from None
    return numpy


class Channel:
    """Two ends that send objects to each other. Made by `bind` at one end and `connect` at the other; used by one thread at a time."""

    def __init__(self, manager: Manager, owns_manager: bool, classes: tuple[type, ...], allow_pickle: bool) -> None:
        self._manager = manager
        self._owns_manager = owns_manager
        self._allow_pickle = allow_pickle
        self._classes: dict[str, type] = {}
        self._incoming: Any = None
        self._outgoing: Any = None
        self._is_cut = False
        # The last object may be held back by its stream.
        self._is_held_back = False
        # Why nothing can be sent to the other end.
        self._unreachable: Optional[Error] = None
        # A head whose body is the next record.
        self._head: Optional[tuple[int, Any]] = None
        for kind in classes:
            self.accept(kind)

    @classmethod
    def bind(
        cls,
        name: str,
        *,
        classes: tuple[type, ...] = (),
        allow_pickle: bool = False,
        manager: Optional[Manager] = None,
        limit_bytes: Optional[int] = None,
        **options: Any,
    ) -> Channel:
        """An end that the other finds: as `name`, or, with a manager, as an item of it. Further options are those of `hamlyn.open`.

        `limit_bytes` bounds the memory in which objects lie that were not received, and so one object; 64 MiB otherwise.
        """
        channel = cls._open(manager, name if manager is None else None, classes, allow_pickle, options)
        item = _ITEM if manager is None else name
        channel._incoming = channel._manager.bind_stream(item, limit_bytes=limit_bytes)
        return channel

    @classmethod
    def connect(
        cls,
        to: str,
        timeout: Optional[float] = None,
        *,
        classes: tuple[type, ...] = (),
        allow_pickle: bool = False,
        manager: Optional[Manager] = None,
        limit_bytes: Optional[int] = None,
        **options: Any,
    ) -> Channel:
        """Connects to the end `to`: a name, host/name, or name/item where the other end has a manager of its own. Waits until it is there."""
        channel = cls._open(manager, None, classes, allow_pickle, options)
        try:
            incoming = channel._manager.open_stream(limit_bytes=limit_bytes)
            address = to if "/" in to and manager is not None or to.count("/") == 2 else f"{to}/{_ITEM}"
            channel._outgoing = channel._manager.connect_stream(address, timeout)
            channel._incoming = incoming
            channel._outgoing.send(_HEAD.pack(_MARK, _VERSION, _HELLO, 0, 0) + incoming.seed, timeout)
        except BaseException:
            channel.close()
            raise
        return channel

    @classmethod
    def _open(
        cls, manager: Optional[Manager], name: Optional[str], classes: tuple[type, ...], allow_pickle: bool, options: dict[str, Any]
    ) -> Channel:
        if manager is not None:
            if options:
                raise TypeError(f"options of a manager that is open already: {', '.join(options)}")
            return cls(manager, False, classes, allow_pickle)
        return cls(_hamlyn.open(name, **options), True, classes, allow_pickle)

    def accept(self, kind: type) -> type:
        """Registers a dataclass, objects of which may be received. Returns it, so that it can be used as a decorator."""
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
            raise TypeError(f"only dataclasses are registered, not {kind!r}")
        self._classes[_name_of(kind)] = kind
        return kind

    @property
    def manager(self) -> Manager:
        """The manager of this end."""
        return self._manager

    @property
    def peer(self) -> Optional[Peer]:
        """Who sends, as the kernel or the handshake vouches; None before anything has come."""
        return self._incoming.sender  # type: ignore[no-any-return]

    def send(self, value: Any, timeout: Optional[float] = None, *, pickle: bool = False) -> None:
        """Sends an object, and waits for room; the end that was bound waits for the other first. TimedOut: nothing was sent.

        With `pickle` the object travels as a pickle, which only a receiver takes that allows it.
        """
        if self._outgoing is None and self._unreachable is None:
            self._greet(timeout)
        if self._unreachable is not None:
            raise self._unreachable
        if self._is_cut:
            raise Cut("an object was cut when it was partly sent, so this channel cannot send any more: open another")
        kind = type(value)
        if pickle:
            self._send_lone(_PICKLE, b"", memoryview(_pickled(value)), timeout)
        elif kind is bytes and len(value) < _APART_BYTES:
            self._outgoing.send(_HEAD.pack(_MARK, _VERSION, _BYTES, 1, 0) + value, timeout)
        elif kind is bytes:
            self._send_lone(_BYTES, b"", memoryview(value), timeout)
        elif (numpy := _numpy()) is not None and kind is numpy.ndarray and not value.dtype.names and not value.dtype.hasobject:
            self._send_array(numpy, value, timeout)
        else:
            writer = _Writer()
            structure = json.dumps(writer.take(value), separators=(",", ":")).encode()
            if len(writer.buffers) == 1:
                self._send_lone(_OBJECT, structure, writer.buffers[0], timeout)
            else:
                self._outgoing.send(_frame(structure, writer.buffers), timeout)
        self._flush(timeout)

    def _flush(self, timeout: Optional[float]) -> None:
        """The stream holds small records back while its receiver is behind; nobody may send the next one."""
        try:
            self._outgoing.flush(timeout)
            self._is_held_back = False
        except TimedOut:
            # It is accepted, and goes with the next call.
            self._is_held_back = True
        except (Closed, PeerGone):
            # The object was accepted before; the next is told.
            self._is_held_back = False

    def _send_array(self, numpy: Any, value: Any, timeout: Optional[float]) -> None:
        head = _head_of(value)
        if value.nbytes < _APART_BYTES:
            self._outgoing.send(head + value.tobytes(), timeout)
        else:
            array = numpy.ascontiguousarray(value)
            # As bytes: not all types have a buffer of their own.
            view = array.reshape(-1).view(numpy.uint8)
            self._send_apart(head[:3] + bytes([_ARRAY_APART]) + head[4:], view, timeout)

    def _send_apart(self, head: bytes, body: Any, timeout: Optional[float]) -> None:
        self._outgoing.send(head, timeout)
        try:
            self._outgoing.send(body, timeout)
        except BaseException as error:
            # The other end awaits the body, and takes whatever comes for it.
            self._is_cut = True
            if isinstance(error, TimedOut):
                raise Cut("the time was over when the object was partly sent: the channel cannot send any more; open another") from None
            raise

    def _send_lone(self, kind: int, structure: bytes, buffer: memoryview, timeout: Optional[float]) -> None:
        """Sends a frame with one buffer."""
        if len(buffer) >= _APART_BYTES:
            self._send_apart(_HEAD.pack(_MARK, _VERSION, kind + 1, 1, len(structure)) + structure, buffer, timeout)
        elif kind == _OBJECT:
            self._outgoing.send(_frame(structure, [buffer]), timeout)
        else:
            self._outgoing.send(_HEAD.pack(_MARK, _VERSION, kind, 1, len(structure)) + structure + bytes(buffer), timeout)

    def recv(self, timeout: Optional[float] = None, *, copy: bool = True) -> Any:
        """The next object. TimedOut if none came in time, Closed when the other end has closed, PeerGone when it is gone.

        With copy=False arrays are read-only and lie where they landed, which holds back the sender's memory as long as they live.
        """
        if self._is_held_back:
            self._flush(timeout)
        while True:
            message = self._incoming.recv(timeout)
            if message is None:
                raise TimedOut("nothing came over the channel in time: wait for longer")
            done, value = self._take(message, copy)
            if done:
                return value

    def _take(self, message: Message, copy: bool) -> tuple[bool, Any]:
        """What a record is: whether it completes an object, and the object."""
        if self._head is not None:
            (kind, structure), self._head = self._head, None
            if kind == _BYTES_APART:
                value = message.tobytes()
            elif kind == _ARRAY_APART:
                dtype, shape, needed = structure
                value = _array_of(dtype, shape, needed, message, copy)
            elif kind == _OBJECT_APART:
                value = self._read(structure, [memoryview(message)], copy)
            else:
                value = self._unpickle(message.tobytes())
            return True, value
        if len(message) < _HEAD.size:
            raise Malformed("the peer sent a record that is no frame of a channel")
        with memoryview(message) as view:
            mark, version, kind, buffers, length = _HEAD.unpack_from(view)
            if mark != _MARK or version != _VERSION:
                raise Malformed("the peer sent a frame of another version, or none: update the older program")
            body = view[_HEAD.size :]
            try:
                if length > len(body) or buffers > _BUFFERS_MAX:
                    raise Malformed("the peer sent a frame that is cut")
                if kind == _BYTES:
                    return True, bytes(body)
                if kind in (_ARRAY, _ARRAY_APART):
                    return self._take_array(kind, message, view, buffers, length, copy)
                structure = bytes(body[:length])
                if kind in (_BYTES_APART, _OBJECT_APART, _PICKLE_APART):
                    self._head = (kind, structure)
                    return False, None
                if kind == _PICKLE:
                    return True, self._unpickle(bytes(body))
                if kind == _HELLO and self._outgoing is None and self._unreachable is None:
                    self._connect_back(bytes(body))
                    return False, None
            finally:
                body.release()
        if kind != _OBJECT:
            raise Malformed(f"the peer sent a frame of the kind {kind}, which comes at another time, or is none")
        return True, self._read(structure, _buffers_of(memoryview(message), _HEAD.size + length, buffers), copy)

    def _connect_back(self, seed: bytes) -> None:
        try:
            self._outgoing = self._manager.connect_stream(seed, _CONNECT_SECONDS)
        except Invalid as error:
            raise Malformed(f"the peer sent a greeting that is none: {error}") from None
        except Error as error:
            # What it has sent can be received all the same.
            self._unreachable = error

    def _take_array(self, kind: int, message: Message, view: memoryview, lengths: int, text_bytes: int, copy: bool) -> tuple[bool, Any]:
        end = _HEAD.size + 8 * lengths + text_bytes
        end += _padding(end)
        if end > len(view):
            raise Malformed("the peer sent a frame that is cut")
        dtype, shape, needed = _shape_of(bytes(view[:end]), lengths, text_bytes)
        if kind == _ARRAY_APART:
            self._head = (kind, (dtype, shape, needed))
            return False, None
        return True, _array_of(dtype, shape, needed, memoryview(message)[end:], copy)

    def _read(self, structure: bytes, buffers: list[memoryview], copy: bool) -> Any:
        try:
            value = _Reader(buffers, self._classes, copy).put(json.loads(structure))
        except (ValueError, RecursionError) as error:
            if isinstance(error, Malformed):
                raise
            raise Malformed(f"the peer sent a structure that cannot be read: {error}") from None
        finally:
            if copy:
                for buffer in buffers:
                    buffer.release()
        return value

    def _unpickle(self, pickled: bytes) -> Any:
        if not self._allow_pickle:
            raise Malformed(
                "the peer sent a pickle, which could have this program do anything: let it send a dataclass, or, if it is trusted, open the "
                "channel with allow_pickle=True"
            )
        return pickle.loads(pickled)

    def _greet(self, timeout: Optional[float]) -> None:
        """Waits for the other end, which says where it receives."""
        message = self._incoming.recv(timeout)
        if message is None:
            raise TimedOut("nobody has connected to the channel in time: wait for longer")
        done, _ = self._take(message, True)
        if done or self._outgoing is None and self._unreachable is None:
            raise Malformed("the peer sent something before its greeting")

    def poll(self) -> None:
        """Takes in what has come, for programs that compute for long."""
        self._manager.poll()

    def fileno(self) -> int:
        """The descriptor of the manager, for event loops: see `Manager.prepare_sleep`."""
        return self._manager.fileno()

    def __iter__(self) -> Iterator[Any]:
        while True:
            try:
                yield self.recv()
            except Closed:
                return

    def close(self, timeout: Optional[float] = 10) -> None:
        """Closes this end, when the other has room for all that was sent. The other end receives what is left, and then Closed."""
        try:
            if self._outgoing is not None:
                self._outgoing.close(timeout)
        except (PeerGone, Closed):
            pass
        finally:
            if self._incoming is not None:
                self._incoming.close()
            if self._owns_manager:
                self._manager.close()

    def __enter__(self) -> Channel:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self.close()


def _pickled(value: Any) -> bytes:
    return pickle.dumps(value, protocol=5)


def _frame(structure: bytes, buffers: list[memoryview]) -> bytes:
    """A frame with its buffers: after the structure their lengths, then each at a multiple of 64 bytes from the beginning."""
    parts = [_HEAD.pack(_MARK, _VERSION, _OBJECT, len(buffers), len(structure)), structure]
    at = _HEAD.size + len(structure) + 8 * len(buffers)
    parts.append(struct.pack(f"<{len(buffers)}Q", *(len(buffer) for buffer in buffers)))
    for buffer in buffers:
        padding = _padding(at)
        parts.append(bytes(padding))
        parts.append(buffer)  # type: ignore[arg-type]
        at += padding + len(buffer)
    return b"".join(parts)


def _buffers_of(view: memoryview, at: int, count: int) -> list[memoryview]:
    """The buffers of a frame, whose lengths begin there."""
    if at + 8 * count > len(view):
        raise Malformed("the peer sent a frame that is cut")
    lengths = struct.unpack_from(f"<{count}Q", view, at)
    at += 8 * count
    buffers = []
    for length in lengths:
        at += _padding(at)
        if at + length > len(view):
            raise Malformed("the peer sent a frame that is cut")
        buffers.append(view[at : at + length])
        at += length
    view.release()
    return buffers
