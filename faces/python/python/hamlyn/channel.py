"""`Channel`: objects between two processes, as simply as with `multiprocessing.Pipe`, across hosts too, by name.

What it carries: None, bools, ints, floats, texts, bytes and other buffers, arrays of NumPy, lists, tuples, dictionaries, and dataclasses
that the receiver has registered. The structure travels as JSON, buffers beside it as they are: an array is a type, a shape and its bytes
(`frames.py`). Nothing that a peer sends is unpickled, unless the program asks for it, for then the peer can have it do anything.
"""

from __future__ import annotations

import dataclasses
import json
import pickle
from typing import TYPE_CHECKING, Any, Iterator, Optional

from . import _hamlyn
from .errors import Closed, Cut, Error, Invalid, Malformed, PeerGone, TimedOut
from .frames import (
    APART_BYTES,
    ARRAY,
    ARRAY_APART,
    BUFFERS_MAX,
    BYTES,
    BYTES_APART,
    HEAD,
    HELLO,
    MARK,
    OBJECT,
    OBJECT_APART,
    PICKLE,
    PICKLE_APART,
    VERSION,
    Reader,
    Writer,
    array_of,
    buffers_of,
    frame_of,
    head_of,
    name_of,
    numpy_if_imported,
    padding_after,
    shape_of,
)

if TYPE_CHECKING:
    from types import TracebackType

    from ._hamlyn import Manager, Message, Peer

_ITEM = "channel"
# For the way back, to an end that has just greeted.
_CONNECT_SECONDS = 10


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
            channel._outgoing.send(HEAD.pack(MARK, VERSION, HELLO, 0, 0) + incoming.seed, timeout)
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
        self._classes[name_of(kind)] = kind
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
            self._send_lone(PICKLE, b"", memoryview(_pickled(value)), timeout)
        elif kind is bytes and len(value) < APART_BYTES:
            self._outgoing.send(HEAD.pack(MARK, VERSION, BYTES, 1, 0) + value, timeout)
        elif kind is bytes:
            self._send_lone(BYTES, b"", memoryview(value), timeout)
        elif (numpy := numpy_if_imported()) is not None and kind is numpy.ndarray and not value.dtype.names and not value.dtype.hasobject:
            self._send_array(numpy, value, timeout)
        else:
            writer = Writer()
            structure = json.dumps(writer.take(value), separators=(",", ":")).encode()
            if len(writer.buffers) == 1:
                self._send_lone(OBJECT, structure, writer.buffers[0], timeout)
            else:
                self._outgoing.send(frame_of(structure, writer.buffers), timeout)
        self._flush(timeout)

    def _flush(self, timeout: Optional[float]) -> None:
        """The stream holds small records back while its receiver is behind, and what has no room in the link waits here; nobody may send the
        next one, or drive the manager. A manager of the program's own is driven by the program."""
        try:
            self._outgoing.flush(timeout)
            if self._owns_manager:
                self._manager.flush(timeout)
            self._is_held_back = False
        except TimedOut:
            # It is accepted, and goes with the next call.
            self._is_held_back = True
        except (Closed, PeerGone):
            # The object was accepted before; the next is told.
            self._is_held_back = False

    def _send_array(self, numpy: Any, value: Any, timeout: Optional[float]) -> None:
        head = head_of(value)
        if value.nbytes < APART_BYTES:
            self._outgoing.send(head + value.tobytes(), timeout)
        else:
            array = numpy.ascontiguousarray(value)
            # As bytes: not all types have a buffer of their own.
            view = array.reshape(-1).view(numpy.uint8)
            self._send_apart(head[:3] + bytes([ARRAY_APART]) + head[4:], view, timeout)

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
        if len(buffer) >= APART_BYTES:
            self._send_apart(HEAD.pack(MARK, VERSION, kind + 1, 1, len(structure)) + structure, buffer, timeout)
        elif kind == OBJECT:
            self._outgoing.send(frame_of(structure, [buffer]), timeout)
        else:
            self._outgoing.send(HEAD.pack(MARK, VERSION, kind, 1, len(structure)) + structure + bytes(buffer), timeout)

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
            if kind == BYTES_APART:
                value = message.tobytes()
            elif kind == ARRAY_APART:
                dtype, shape, needed = structure
                value = array_of(dtype, shape, needed, message, copy)
            elif kind == OBJECT_APART:
                value = self._read(structure, [memoryview(message)], copy)
            else:
                value = self._unpickle(message.tobytes())
            return True, value
        if len(message) < HEAD.size:
            raise Malformed("the peer sent a record that is no frame of a channel")
        with memoryview(message) as view:
            mark, version, kind, buffers, length = HEAD.unpack_from(view)
            if mark != MARK or version != VERSION:
                raise Malformed("the peer sent a frame of another version, or none: update the older program")
            body = view[HEAD.size :]
            try:
                if length > len(body) or buffers > BUFFERS_MAX:
                    raise Malformed("the peer sent a frame that is cut")
                if kind == BYTES:
                    return True, bytes(body)
                if kind in (ARRAY, ARRAY_APART):
                    return self._take_array(kind, message, view, buffers, length, copy)
                structure = bytes(body[:length])
                if kind in (BYTES_APART, OBJECT_APART, PICKLE_APART):
                    self._head = (kind, structure)
                    return False, None
                if kind == PICKLE:
                    return True, self._unpickle(bytes(body))
                if kind == HELLO and self._outgoing is None and self._unreachable is None:
                    self._connect_back(bytes(body))
                    return False, None
            finally:
                body.release()
        if kind != OBJECT:
            raise Malformed(f"the peer sent a frame of the kind {kind}, which comes at another time, or is none")
        return True, self._read(structure, buffers_of(memoryview(message), HEAD.size + length, buffers), copy)

    def _connect_back(self, seed: bytes) -> None:
        try:
            self._outgoing = self._manager.connect_stream(seed, _CONNECT_SECONDS)
        except Invalid as error:
            raise Malformed(f"the peer sent a greeting that is none: {error}") from None
        except Error as error:
            # What it has sent can be received all the same.
            self._unreachable = error

    def _take_array(self, kind: int, message: Message, view: memoryview, lengths: int, text_bytes: int, copy: bool) -> tuple[bool, Any]:
        end = HEAD.size + 8 * lengths + text_bytes
        end += padding_after(end)
        if end > len(view):
            raise Malformed("the peer sent a frame that is cut")
        dtype, shape, needed = shape_of(bytes(view[:end]), lengths, text_bytes)
        if kind == ARRAY_APART:
            self._head = (kind, (dtype, shape, needed))
            return False, None
        return True, array_of(dtype, shape, needed, memoryview(message)[end:], copy)

    def _read(self, structure: bytes, buffers: list[memoryview], copy: bool) -> Any:
        try:
            value = Reader(buffers, self._classes, copy).put(json.loads(structure))
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
