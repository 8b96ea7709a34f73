"""Types of NumPy's arrays: whether their bytes are data, and how a type is told to another program, and read from one that may be hostile.

A type is told by a text, `dtype.str`, or, if it is structured, by all that makes it up: names, types, offsets and length.
"""

from __future__ import annotations

import re
import reprlib
import sys
from typing import Any

from .errors import Malformed

# NumPy 2 has so many; an older one refuses by itself what it cannot have.
DIMENSIONS_MAX = 64
# Longer texts of types, structures of more fields, and deeper ones are refused.
TEXT_MAX = 64
_FIELDS_MAX = 1024
_DEPTH_MAX = 8
# What `dtype.str` says of types that are data.
_SIMPLE = re.compile(r"[<>|][biufcmMSUV][0-9]{1,18}(\[[0-9]{0,9}[A-Za-z]{1,7}\])?")
_LENGTH_MAX = (1 << 63) - 1


def shown(value: Any) -> str:
    """A value of a peer's in an error's text: not more of it than a reader wants."""
    return reprlib.repr(value)


def array_holds_addresses(array: Any) -> bool:
    """Whether the bytes of an array are addresses. Called by the extension for arrays whose type has no format."""
    import numpy

    return not isinstance(array, (numpy.ndarray, numpy.generic)) or holds_addresses(array.dtype)


def holds_addresses(dtype: Any) -> bool:
    """Whether memory of that type holds addresses of objects or of other memory, and not its data."""
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
