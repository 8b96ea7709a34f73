"""`Channel`: objects between two processes, as simply as with `multiprocessing.Pipe`, across hosts too, by name.

What it carries: None, bools, ints, floats, texts, bytes and other buffers, arrays of NumPy, lists, tuples, dictionaries, and dataclasses
that the receiver has registered. The structure travels as JSON, buffers beside it as they are: an array is a type, a shape and its bytes
(`frames.py`). Nothing that a peer sends is unpickled, unless the program asks for it, for then the peer can have it do anything.
"""

from __future__ import annotations

import dataclasses
import pickle
import time
import warnings
from typing import TYPE_CHECKING, Any, Iterator, Optional

from . import _hamlyn
from .arguments import seconds
from .dtypes import data_of, shown
from .errors import Closed, Cut, Error, HandleClosed, Invalid, Malformed, PeerGone, TimedOut
from .frames import (
    APART_BYTES,
    ARRAY,
    ARRAY_APART,
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
    Buffers,
    Reader,
    Writer,
    array_of,
    frame_of,
    head_length,
    head_of,
    name_of,
    numpy_if_imported,
    refuse_objects,
    shape_of,
)

if TYPE_CHECKING:
    from types import TracebackType

    from ._hamlyn import Manager, Message, Peer

_ITEM = "channel"
# For the way back, to an end that has just greeted.
_CONNECT_SECONDS = 10
# A ticket is the beginning of a stream's seed.
_TICKET_BYTES = 52
# A receive looks again after so long whether what is kept has room.
_KEPT_SECONDS = 0.01
# The time that the end of a `with` waits for the other end to make room.
_CLOSING_SECONDS = 5


class _Deadline:
    """The remaining time of a wait that has several parts."""

    def __init__(self, timeout: Optional[float]) -> None:
        timeout = seconds(timeout)
        self._at = None if timeout is None else time.monotonic() + timeout

    def left(self, most: Optional[float] = None) -> Optional[float]:
        left = None if self._at is None else max(0.0, self._at - time.monotonic())
        return left if most is None or left is not None and left < most else most


class Channel:
    """Two ends that send objects to each other. Made by `bind` at one end and `connect` at the other; used by one thread at a time."""

    def __init__(self, manager: Manager, owns_manager: bool, classes: tuple[type, ...], allow_pickle: bool) -> None:
        self._manager = manager
        self._owns_manager = owns_manager
        self._allow_pickle = allow_pickle
        self._classes: dict[str, type] = {}
        self._names: dict[type, str] = {}
        self._incoming: Any = None
        self._outgoing: Any = None
        self._is_cut = False
        # Objects that were accepted since all had left: the last of them may lie here.
        self._kept = 0
        # The seed of the other end's stream, until this end is connected to it.
        self._seed: Optional[bytes] = None
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
            channel._drop()
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

    def accept(self, kind: type, name: Optional[str] = None) -> type:
        """Registers a dataclass, objects of which may be received. Returns it, so that it can be
        used as a decorator.

        Both ends call a class by its module and name, "package.module.Job"; the main module is "__main__" in children of multiprocessing,
        too. Where that differs, both register it under a `name` of their choice.
        """
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
            raise TypeError(f"only dataclasses are registered, not {kind!r}")
        if name is not None:
            self._names[kind] = name
        self._classes[name or name_of(kind)] = kind
        return kind

    @property
    def manager(self) -> Manager:
        """The manager of this end."""
        return self._manager

    @property
    def peer(self) -> Optional[Peer]:
        """Who sends, as the kernel or the handshake vouches; None before anything has come."""
        return self._incoming.sender  # type: ignore[no-any-return]

    def send(self, value: Any, timeout: Optional[float] = None, *, pickle: bool = False) -> bool:
        """Sends an object, and waits for room; the end that was bound waits for the other first. TimedOut: nothing was sent.

        True if the object has left; False if it was accepted and a part of it is kept here, for the other end had no room in time: it goes
        with the next `poll`, `send`, `recv` or `close`. With `pickle` the object travels as a pickle, which only a receiver takes that
        allows it.
        """
        deadline = _Deadline(timeout)
        if self._outgoing is None and self._unreachable is None:
            self._greet(deadline)
        if self._unreachable is not None:
            raise self._unreachable
        if self._is_cut:
            raise Cut("an object was cut when it was partly sent, so this channel cannot send any more: open another")
        kind = type(value)
        if pickle:
            self._send_lone(PICKLE, b"", memoryview(_pickled(value)), deadline)
        elif kind is bytes and len(value) < APART_BYTES:
            self._outgoing.send(HEAD.pack(MARK, VERSION, BYTES, 1, 0) + value, deadline.left())
        elif kind is bytes:
            self._send_lone(BYTES, b"", memoryview(value), deadline)
        elif (numpy := numpy_if_imported()) is not None and kind is numpy.ndarray and value.dtype.names is None:
            self._send_array(value, deadline)
        else:
            writer = Writer(self._names)
            structure = writer.structure_of(value)
            if len(writer.buffers) == 1:
                self._send_lone(OBJECT, structure, writer.buffers[0], deadline)
            else:
                self._outgoing.send(frame_of(structure, writer.buffers), deadline.left())
        self._kept += 1
        return self._flush(deadline.left())

    def _flush(self, timeout: Optional[float]) -> bool:
        """Returns True if all has left. The stream holds small records back while its receiver is
        behind, and what has no room in the link waits here; nobody may send the next one, or drive
        the manager. A manager of the program's own is driven by the program."""
        try:
            self._outgoing.flush(timeout)
            if self._owns_manager:
                self._manager.flush(timeout)
        except TimedOut:
            return False
        except (Closed, PeerGone):
            # The objects were accepted before; the next is told.
            pass
        self._kept = 0
        return True

    def _send_array(self, value: Any, deadline: _Deadline) -> None:
        refuse_objects(value.dtype)
        head = head_of(value)
        if value.nbytes < APART_BYTES:
            self._outgoing.send(head + data_of(value), deadline.left())
        else:
            self._send_apart(head[:3] + bytes([ARRAY_APART]) + head[4:], data_of(value), deadline)

    def _send_apart(self, head: bytes, body: Any, deadline: _Deadline) -> None:
        self._outgoing.send(head, deadline.left())
        try:
            self._outgoing.send(body, deadline.left())
        except BaseException as error:
            # The other end awaits the body, and takes whatever comes for it.
            self._is_cut = True
            if isinstance(error, TimedOut):
                raise Cut("the time was over when the object was partly sent: the channel cannot send any more; open another") from None
            raise

    def _send_lone(self, kind: int, structure: bytes, buffer: memoryview, deadline: _Deadline) -> None:
        """Sends a frame with one buffer."""
        if len(buffer) >= APART_BYTES:
            self._send_apart(HEAD.pack(MARK, VERSION, kind + 1, 1, len(structure)) + structure, buffer, deadline)
        elif kind == OBJECT:
            self._outgoing.send(frame_of(structure, [buffer]), deadline.left())
        else:
            self._outgoing.send(HEAD.pack(MARK, VERSION, kind, 1, len(structure)) + structure + bytes(buffer), deadline.left())

    def recv(self, timeout: Optional[float] = None, *, copy: bool = True) -> Any:
        """The next object. TimedOut if none came in time, Closed when the other end has closed, PeerGone when it is gone.

        With copy=False arrays are read-only and lie where they landed, which holds back the sender's memory as long as they live.
        """
        deadline = _Deadline(timeout)
        while True:
            # The other end may wait for what is kept here.
            is_behind = self._kept > 0 and not self._flush(0)
            left = deadline.left()
            message = self._incoming.recv(deadline.left(_KEPT_SECONDS) if is_behind else left)
            if message is None:
                if is_behind and (left is None or left > 0):
                    continue
                raise TimedOut("nothing came over the channel in time: wait for longer")
            done, value = self._take(message, copy)
            if done:
                return value
            message = None
            self._reach(deadline)

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
                value = self._read(structure, Buffers.alone(memoryview(message)), copy)
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
                if length > len(body):
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
                if kind == HELLO and self._outgoing is None and self._seed is None and self._unreachable is None:
                    self._seed = self._seed_of(message, bytes(body))
                    return False, None
            finally:
                body.release()
        if kind != OBJECT:
            raise Malformed(f"the peer sent a frame of the kind {kind}, which comes at another time, or is none")
        return True, self._read(structure, Buffers(buffers, memoryview(message), HEAD.size + length), copy)

    def _seed_of(self, message: Message, seed: bytes) -> bytes:
        """The seed of a greeting. It must be the sender's own: nobody has this end connect to
        others."""
        try:
            ticket = _hamlyn.Ticket(seed[:_TICKET_BYTES])
        except Invalid as error:
            raise Malformed(f"the peer sent a greeting that is none: {error}") from None
        sender = message.sender  # type: ignore[attr-defined]
        if sender is None or ticket.interface != sender.interface:
            raise Malformed("the peer sent a greeting for another program")
        return seed

    def _reach(self, deadline: _Deadline) -> None:
        """Connects to the other end, if it has greeted. Later, if the time is over before."""
        if self._seed is None:
            return
        try:
            self._outgoing = self._manager.connect_stream(self._seed, deadline.left(_CONNECT_SECONDS))
        except TimedOut:
            return
        except Invalid as error:
            self._seed = None
            raise Malformed(f"the peer sent a greeting that is none: {error}") from None
        except Error as error:
            # What it has sent can be received all the same.
            self._unreachable = error
        self._seed = None

    def _take_array(self, kind: int, message: Message, view: memoryview, lengths: int, text_bytes: int, copy: bool) -> tuple[bool, Any]:
        end = head_length(lengths, text_bytes)
        if end > len(view):
            raise Malformed("the peer sent a frame that is cut")
        dtype, shape, needed = shape_of(bytes(view[:end]), lengths, text_bytes)
        if kind == ARRAY_APART:
            self._head = (kind, (dtype, shape, needed))
            return False, None
        return True, array_of(dtype, shape, needed, memoryview(message)[end:], copy)

    def _read(self, structure: bytes, buffers: Buffers, copy: bool) -> Any:
        try:
            return Reader(buffers, self._classes, copy).read(structure)
        except (ValueError, RecursionError) as error:
            raise Malformed(f"the peer sent a structure that cannot be read: {shown(str(error))}") from None

    def _unpickle(self, pickled: bytes) -> Any:
        if not self._allow_pickle:
            raise Malformed(
                "the peer sent a pickle, which could have this program do anything: let it send a dataclass, or, if it is trusted, open the "
                "channel with allow_pickle=True"
            )
        return pickle.loads(pickled)

    def _greet(self, deadline: _Deadline) -> None:
        """Waits for the other end, which says where it receives."""
        if self._seed is None:
            message = self._incoming.recv(deadline.left())
            if message is None:
                raise TimedOut("nobody has connected to the channel in time: wait for longer")
            done, _ = self._take(message, True)
            if done or self._seed is None:
                raise Malformed("the peer sent something before its greeting")
            del message
        self._reach(deadline)
        if self._seed is not None:
            raise TimedOut("the other end, which has greeted, was not reached in time: wait for longer")

    def poll(self) -> bool:
        """Takes in what has come, and sends what is kept, for programs that compute for long.
        False if something is kept still."""
        self._manager.poll()
        return self._kept == 0 or self._flush(0)

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
        """Closes this end, when the other has room for all that was sent. The other end receives
        what is left, and then Closed. TimedOut if it
        had no room in time: nothing is lost, and the call may be repeated."""
        try:
            if self._outgoing is not None:
                self._outgoing.close(timeout)
        except (PeerGone, Closed, HandleClosed):
            pass
        except TimedOut:
            raise TimedOut("the other end made no room in time for what was sent: close it again, with more time") from None
        self._drop()

    def _drop(self) -> None:
        """Closes it without a wait."""
        for end in (self._outgoing, self._incoming):
            if end is not None:
                _hamlyn.EndPoint.close(end)
        if self._owns_manager:
            self._manager.close()

    def __enter__(self) -> Channel:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        """Closes it. Waits until the other end has room for the rest, 5 s at most and after an
        exception not at all; then a RuntimeWarning
        says how much was lost."""
        try:
            self.close(_CLOSING_SECONDS if kind is None else 0)
        except TimedOut:
            warnings.warn(
                f"a channel ended with {self._kept} objects that the other end had no room for, all or some of which are lost: let it receive "
                "them, or close the channel with more time",
                RuntimeWarning,
                stacklevel=2,
            )
        finally:
            self._drop()


def _pickled(value: Any) -> bytes:
    return pickle.dumps(value, protocol=5)
