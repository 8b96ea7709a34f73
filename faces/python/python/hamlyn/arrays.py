"""`shared_array`: an array that one process writes and others read without a copy, built on loaned messages.

The writer fills each version in place and publishes it; readers have the newest, whole, as a read-only array over the writer's memory. A
message begins with a head: type and shape, so that readers need not know them.
"""

from __future__ import annotations

import json
import math
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterator, Optional

from . import _hamlyn
from .arguments import integer
from .dtypes import DIMENSIONS_MAX, bytes_of_shape, clear_gaps, describe, gaps_of, holds_addresses, type_of
from .errors import Invalid, Malformed, TooLong

if TYPE_CHECKING:
    from types import TracebackType

    from ._hamlyn import Manager, Published, Publisher, Subscriber

# Mark, version, nothing, bytes of the description.
_HEAD = struct.Struct("<2sBBI")
_MARK = b"hA"
_VERSION = 1
_ALIGNMENT = 64
_ITEM = "array"
_NUMBER_MAX = 0xFFFF_FFFF
# A message has no more.
_BYTES_MAX = _NUMBER_MAX
_DESCRIBED_MAX = 1 << 16


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise ImportError("shared arrays need NumPy: install it (pip install numpy)") from None
    return numpy


def _shape_of(shape: Any) -> tuple[int, ...]:
    """A shape that a program says: a length, or several."""
    try:
        lengths = tuple(shape)
    except TypeError:
        lengths = (shape,)
    if len(lengths) > DIMENSIONS_MAX:
        raise Invalid(f"shape has at most {DIMENSIONS_MAX} lengths, not {len(lengths)}")
    return tuple(integer("a length of shape", length, 0, _BYTES_MAX) for length in lengths)


class SharedArray:
    """The writing end: `with array.write() as new: new[...] = values` publishes a version. Made by `shared_array`."""

    def __init__(self, manager: Manager, item: str, shape: Any, dtype: Any, readers: int, versions: int, owns_manager: bool) -> None:
        numpy = _numpy()
        self._dtype = numpy.dtype(dtype)
        if holds_addresses(self._dtype):
            raise TypeError("an array of Python objects cannot be shared: give it a dtype of numbers")
        self._shape = _shape_of(shape)
        self._gaps = gaps_of(self._dtype)
        described = json.dumps([describe(self._dtype), list(self._shape)]).encode()
        head = _HEAD.pack(_MARK, _VERSION, 0, len(described)) + described
        self._head = head + bytes(-len(head) % _ALIGNMENT)
        self._count = math.prod(self._shape)
        self._length = len(self._head) + self._count * self._dtype.itemsize
        if self._length > _BYTES_MAX or len(described) > _DESCRIBED_MAX:
            raise TooLong(
                f"a shared array has at most {_BYTES_MAX} bytes, not {self._length}, and a type of a few thousand fields: share it in parts"
            )
        versions, readers = integer("versions", versions, 1, _NUMBER_MAX), integer("readers", readers, 1, 0xFFFF)
        self._manager = manager
        self._owns_manager = owns_manager
        self._publisher: Publisher = manager.bind_publisher(
            item, message_bytes=self._length, chunks=versions, depth=2, readers=readers, slow_readers="latest"
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """Its type."""
        return self._dtype

    @property
    def manager(self) -> Manager:
        """Its manager."""
        return self._manager

    @property
    def publisher(self) -> Publisher:
        """Its publisher: how many readers there are, and what they lost."""
        return self._publisher

    @contextmanager
    def write(self, timeout: Optional[float] = None) -> Iterator[NewVersion]:
        """A version to be filled in place; it is published at the end of the `with`, unless there is an exception. Its numbers are those of
        some version before, or zeros. Readers never make it wait: they have one version less than there are, and copy what is newer."""
        loan = self._publisher.loan(self._length, timeout)
        new = NewVersion(memoryview(loan), self._head, self._dtype, self._count, self._shape, self._gaps)
        try:
            yield new
        except BaseException:
            # What is not published is given back when it is deleted.
            new._close()
            raise
        new._finish()
        try:
            loan.publish()
        except BufferError:
            raise BufferError(
                "the new version of the array, or a part of it, is still in a variable: delete that before the `with` ends, or assign "
                "with new[...] = values"
            ) from None

    def publish(self, array: Any, timeout: Optional[float] = None) -> None:
        """Publishes a copy of an array of this shape, or of what NumPy makes one of."""
        with self.write(timeout) as new:
            new[...] = array

    def poll(self) -> None:
        """Lets in new readers, and sends the newest version to those on other hosts. Others need no call for it: they see it by themselves."""
        self._publisher.poll()

    def close(self) -> None:
        """Closes it: readers have what they hold."""
        self._publisher.close()
        if self._owns_manager:
            self._manager.close()

    def __enter__(self) -> SharedArray:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self.close()


class NewVersion:
    """A version that is being filled: `new[...] = values`, or `numpy.add(a, b, out=new.array)`."""

    def __init__(self, view: memoryview, head: bytes, dtype: Any, count: int, shape: tuple[int, ...], gaps: Any) -> None:
        view[: len(head)] = head
        self._gaps = gaps
        self._view: Optional[memoryview] = view
        self._parts = (dtype, count, len(head), shape)

    @property
    def array(self) -> Any:
        """The array, to be written in place. It is not to be kept: none of it may be alive when the version is published."""
        if self._view is None:
            raise ValueError("this version was published: write another")
        dtype, count, offset, shape = self._parts
        numpy = _numpy()
        if count == 0:
            return numpy.empty(shape, dtype)
        return numpy.frombuffer(self._view, dtype, count, offset).reshape(shape)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[index] = value

    def __getitem__(self, index: Any) -> Any:
        return self.array[index]

    def _finish(self) -> None:
        if self._gaps is not None and self._parts[1]:
            clear_gaps(self.array, self._gaps)
        self._close()

    def _close(self) -> None:
        if self._view is not None:
            self._view.release()
            self._view = None


class ArrayReader:
    """A reading end. Made by `shared_array` without a shape."""

    def __init__(self, manager: Manager, to: str, timeout: Optional[float], trust_publisher: bool, owns_manager: bool) -> None:
        _numpy()
        self._manager = manager
        self._owns_manager = owns_manager
        self._subscriber: Subscriber = manager.connect_subscriber(to, timeout, trust_publisher=trust_publisher)

    @property
    def manager(self) -> Manager:
        """Its manager."""
        return self._manager

    @property
    def subscriber(self) -> Subscriber:
        """Its subscriber: what it lost, whether it reads in place."""
        return self._subscriber

    def latest(self, timeout: Optional[float] = None) -> Any:
        """The newest version, if it was not read before, as a read-only array: over the writer's memory if it is trusted and this reader
        keeps up, which stays as long as the array lives, or else over a copy. None if there was no new one in time. Closed when the writer has ended."""
        sample = self._subscriber.recv(timeout)
        return None if sample is None else _array_of(memoryview(sample))

    def __iter__(self) -> Iterator[Any]:
        """New versions, until the writer ends."""
        for sample in self._subscriber:
            yield _array_of(memoryview(sample))

    def close(self) -> None:
        """Closes it. Arrays stay good."""
        self._subscriber.close()
        if self._owns_manager:
            self._manager.close()

    def __enter__(self) -> ArrayReader:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self.close()


def _array_of(view: memoryview) -> Any:
    """The array in a message, whose head is checked before it is used."""
    numpy = _numpy()
    bad = Malformed("the publisher sent a message that is no shared array of this version")
    if len(view) < _HEAD.size:
        raise bad
    mark, version, _, length = _HEAD.unpack_from(view)
    offset = _HEAD.size + length
    offset += -offset % _ALIGNMENT
    if mark != _MARK or version != _VERSION or length > _DESCRIBED_MAX or offset > len(view):
        raise bad
    try:
        described, shape = json.loads(bytes(view[_HEAD.size : _HEAD.size + length]))
        dtype = type_of(described)
        needed = bytes_of_shape(shape, dtype.itemsize)
        if offset + needed > len(view):
            raise bad
        if needed == 0:
            return numpy.empty(shape, dtype)
        array = numpy.frombuffer(view, dtype, needed // dtype.itemsize, offset).reshape(shape)
    except (Malformed, ValueError, TypeError, RecursionError):
        raise bad from None
    return array


def shared_array(
    name: str,
    shape: Any = None,
    dtype: Any = "float64",
    *,
    timeout: Optional[float] = None,
    readers: int = 16,
    versions: int = 8,
    trust_publisher: bool = False,
    manager: Optional[Manager] = None,
    **options: Any,
) -> Any:
    """An array that one process writes and others read: with a shape the writing end, a `SharedArray`; without one a reading end, an
    `ArrayReader`, which waits until the writer is there.

    `name` is that of the array, and of the manager that is opened for it; host/name elsewhere. With a `manager` it is an item of that, or,
    to read, name/item. `versions` bounds the memory: one is written while readers have the others, and the newest is kept besides. Further
    options are those of `hamlyn.open`.
    """
    if manager is not None and options:
        raise TypeError(f"options of a manager that is open already: {', '.join(options)}")
    owns_manager = manager is None
    if shape is not None:
        owner = _hamlyn.open(name, **options) if manager is None else manager
        return SharedArray(owner, _ITEM if owns_manager else name, shape, dtype, readers, versions, owns_manager)
    owner = _hamlyn.open(**options) if manager is None else manager
    address = name if "/" in name and manager is not None or name.count("/") == 2 else f"{name}/{_ITEM}"
    return ArrayReader(owner, address, timeout, trust_publisher, owns_manager)
