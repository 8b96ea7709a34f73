"""Types of NumPy's arrays: whether their bytes are data, and how a type is told to another
program, and read from one that may be hostile.

A type is told by a text, `dtype.str`, or, if it is structured, by all that makes it up: names, types, offsets and length.
"""

from __future__ import annotations

import re
import reprlib
import sys
from typing import Any

from .errors import Invalid, Malformed

# NumPy 2 has so many; an older one refuses by itself what it cannot have.
DIMENSIONS_MAX = 64
# Longer texts of types, structures of more fields, and deeper ones are refused.
TEXT_MAX = 64
_FIELDS_MAX = 1024
_DEPTH_MAX = 8
# The texts of `dtype.str` for types that are data.
_SIMPLE = re.compile(r"[<>|][biufcmMSUV][0-9]{1,18}(\[[0-9]{0,9}[A-Za-z]{1,7}\])?")
_LENGTH_MAX = (1 << 63) - 1


def shown(value: Any) -> str:
    """A value of a peer's in an error's text: not more of it than a reader wants."""
    return reprlib.repr(value)


def array_holds_addresses(array: Any) -> bool:
    """Returns True if the bytes of an array are addresses. Called by the extension for arrays
    whose type has no format."""
    import numpy

    return not isinstance(array, (numpy.ndarray, numpy.generic)) or holds_addresses(array.dtype)


def holds_addresses(dtype: Any) -> bool:
    """Returns True if memory of that type holds addresses of objects or of other memory, and not
    its data."""
    if dtype.subdtype is not None:
        return holds_addresses(dtype.subdtype[0])
    if dtype.names is not None:
        return any(holds_addresses(dtype.fields[name][0]) for name in dtype.names)
    return bool(dtype.hasobject) or dtype.kind not in "biufcmMSUV"


def octets(data: Any) -> memoryview:
    """The bytes of a buffer of data, whatever its format."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(data, numpy.ndarray):
        # Not all types of arrays have a format.
        data = numpy.ascontiguousarray(data).reshape(-1).view(numpy.uint8) if data.size else b""
    view = memoryview(data)
    if not view.nbytes:
        return memoryview(b"")
    try:
        return view.cast("B")
    except (TypeError, ValueError, NotImplementedError):
        return memoryview(view.tobytes())


def describe(dtype: Any) -> Any:
    """A type, as JSON has it. TypeError if the other end would not make the same of it."""
    described = _described(dtype)
    try:
        made = type_of(described)
    except Malformed:
        made = None
    if made != dtype or made.type is not dtype.type:
        raise TypeError(
            f"arrays of the type {shown(dtype)} cannot be sent by type and bytes: send them as an array of numbers, texts, dates, or of a "
            f"structure of these with at most {_FIELDS_MAX} fields and {_DEPTH_MAX} levels"
        )
    return described


def _described(dtype: Any) -> Any:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return [_described(base), list(shape)]
    if dtype.names is None:
        return dtype.str
    fields = [dtype.fields[name] for name in dtype.names]
    described = {
        "names": list(dtype.names),
        "formats": [_described(field[0]) for field in fields],
        "offsets": [field[1] for field in fields],
        "itemsize": dtype.itemsize,
    }
    if any(len(field) > 2 for field in fields):
        described["titles"] = [field[2] if len(field) > 2 else None for field in fields]
    if dtype.isalignedstruct:
        described["aligned"] = True
    return described


def type_of(described: Any) -> Any:
    """The type that another program tells, checked before it is made. Malformed if there is none,
    or one that nobody sends."""
    try:
        dtype = _made(described, [_FIELDS_MAX], _DEPTH_MAX)
    except (TypeError, ValueError, OverflowError):
        raise Malformed(f"the peer sent an array of the type {shown(described)}, which is none") from None
    if dtype.itemsize == 0:
        raise Malformed(f"the peer sent an array of the type {shown(described)}, which no channel sends")
    return dtype


def _made(described: Any, fields_left: list[int], levels: int) -> Any:
    """ValueError and its like if it cannot be made, or costs more than a type may."""
    numpy = import_numpy()
    if type(described) is str:
        if len(described) > TEXT_MAX or _SIMPLE.fullmatch(described) is None:
            raise ValueError("no type of data")
        return numpy.dtype(described)
    fields_left[0] -= 1
    if levels == 0 or fields_left[0] < 0:
        raise ValueError("too many types in one")
    if type(described) is list:
        base, shape = described
        made = _made(base, fields_left, levels - 1)
        bytes_of_shape(shape, made.itemsize)
        return numpy.dtype((made, tuple(shape)))
    return _made_structure(numpy, described, fields_left, levels - 1)


def _made_structure(numpy: Any, described: Any, fields_left: list[int], levels: int) -> Any:
    if type(described) is not dict or not described.keys() <= {"names", "formats", "offsets", "itemsize", "titles", "aligned"}:
        raise ValueError("no type")
    told: list[Any] = [described.get(key) for key in ("names", "formats", "offsets", "itemsize")]
    names, formats, offsets, length = told
    titles = described.get("titles", [])
    for row in (names, formats, offsets, titles):
        if type(row) is not list:
            raise ValueError("no fields")
    fields_left[0] -= len(names)
    if fields_left[0] < 0 or not len(names) == len(formats) == len(offsets) or len(titles) not in (0, len(names)):
        raise ValueError("too many fields, or fields that are not whole")
    if not all(type(name) is str for name in names) or not all(title is None or type(title) is str for title in titles):
        raise ValueError("fields have names")
    if not all(type(number) is int and 0 <= number <= _LENGTH_MAX for number in (length, *offsets)):
        raise ValueError("fields lie somewhere")
    made = [_made(field, fields_left, levels) for field in formats]
    if not all(offset + field.itemsize <= length for offset, field in zip(offsets, made)):
        raise ValueError("a field that lies outside")
    return numpy.dtype({**described, "formats": made})


def bytes_of_shape(shape: Any, item_bytes: int) -> int:
    """Returns the bytes of an array of that shape. ValueError if no array has it."""
    if len(shape) > DIMENSIONS_MAX:
        raise ValueError(f"{len(shape)} dimensions, which no array has")
    if not all(type(length) is int and 0 <= length <= _LENGTH_MAX for length in shape):
        raise ValueError(f"the shape {shown(shape)}, which is none")
    needed = item_bytes
    for length in shape:
        needed *= length
    if needed > _LENGTH_MAX:
        raise ValueError(f"the shape {shown(shape)}, which is larger than all memory")
    return needed


def data_of(array: Any) -> memoryview:
    """The bytes of an array, in the order of its items; those of no number are zeros."""
    gaps = gaps_of(array.dtype)
    if gaps is not None and array.size:
        array = array.copy(order="C")
        clear_gaps(array, gaps)
    return octets(array)


def clear_gaps(array: Any, gaps: Any) -> None:
    """Zeroes the bytes between the numbers of a contiguous array: old memory, which is
    nobody's business."""
    array.reshape(-1).view("u1").reshape(-1, len(gaps))[:, gaps] = 0


def gaps_of(dtype: Any) -> Any:
    """Returns a mask of the bytes of an item that belong to no number; None if all do."""
    # Floats of 80 bits lie in more bytes.
    if dtype.kind not in "Vfc" or dtype.names is None and dtype.subdtype is None and dtype.char not in "gG":
        return None
    numpy = import_numpy()
    gaps = numpy.ones(dtype.itemsize, bool)
    _fill(gaps, dtype, numpy.finfo("g").nmant == 63)
    return gaps if gaps.any() else None


def _fill(gaps: Any, dtype: Any, has_80_bits: bool) -> None:
    """Marks what are numbers in memory of that type."""
    if dtype.names is not None:
        for name in dtype.names:
            field, offset = dtype.fields[name][:2]
            _fill(gaps[offset : offset + field.itemsize], field, has_80_bits)
    elif dtype.subdtype is not None and (dtype.base.names is not None or dtype.base.char in "gG"):
        base = dtype.base
        for at in range(0, dtype.itemsize, base.itemsize):
            _fill(gaps[at : at + base.itemsize], base, has_80_bits)
    elif dtype.char in "gG" and has_80_bits:
        numbers = gaps.reshape(2 if dtype.char == "G" else 1, -1)
        numbers[:, slice(None, 10) if dtype.isnative else slice(-10, None)] = False
    else:
        gaps[:] = False


def import_numpy() -> Any:
    """NumPy, for what another program has sent."""
    try:
        import numpy
    except ImportError:
        raise Invalid("the peer sent an array, and NumPy is not installed here: install it (pip install numpy)") from None
    return numpy
