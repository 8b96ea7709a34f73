"""Numbers that a program says, refused by name where they are out of range."""

from __future__ import annotations

import operator
from typing import Any

from .errors import Invalid


def integer(name: str, value: Any, least: int, most: int) -> int:
    """An int, or what stands for one, as numbers of NumPy do."""
    try:
        if type(value).__name__ in ("bool", "bool_"):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is an int from {least} to {most}, not {type(value).__name__}") from None
    if not least <= number <= most:
        raise Invalid(f"{name} is an int from {least} to {most}, not {number if number.bit_length() < 100 else 'a far larger one'}")
    return number


def seconds(value: Any) -> Any:
    """A timeout, or None to wait for ever."""
    if value is None or type(value) is float and value >= 0:
        return value
    if isinstance(value, (bool, str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"timeout is a number of seconds, or None to wait for ever; not {type(value).__name__}")
    number = float(value)
    if not number >= 0:
        raise ValueError(f"timeout is 0 seconds or more, or None to wait for ever; not {number}")
    return number
