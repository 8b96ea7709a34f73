"""Exceptions. Each is what a program acts on, and is what Python has for it besides; the text names the object and the remedy.

A view that stands in the way of a release is `BufferError`, as it is for `bytearray` and `mmap`.
"""


class Error(Exception):
    """What all exceptions of this package are."""


class TimedOut(Error, TimeoutError):
    """It was not done in the time that it was given; trying again may help. Nothing is lost."""


class PeerGone(Error, ConnectionError):
    """The peer is gone."""


class NotFound(Error, LookupError):
    """Nobody is there under that name, or nothing under that item."""


class Refused(Error, PermissionError):
    """The other side, or its access list or ours, does not want it; or it was not accepted, or not answered."""


class Closed(Error, EOFError):
    """The stream, service or publisher has come to its end in good order."""


class TooLong(Error, ValueError):
    """The message is too long for its receiver, or does not lie in the place that it is for."""


class Malformed(Error):
    """A peer broke the rules of the protocol."""


class Overrun(Error):
    """Notifications were lost: their queue is too short."""


class Cut(Error):
    """A part of the message was sent when the time was over: its receiver must make itself ready again."""


class Taken(Error):
    """The name, item, stream or group is taken."""


class Invalid(Error, ValueError):
    """An argument that cannot be used: a length, a setting, a name, bytes that are no ticket."""


class InUse(Error, RuntimeError):
    """Another thread uses the manager now: open one for each thread."""


class Forked(Error, RuntimeError):
    """The object belongs to the process that was forked from: open another in the child."""


class HandleClosed(Error, ValueError):
    """The manager or end point was closed."""


class Released(Error, ValueError):
    """The message was released or used up, or the call has no reply to come."""


class SystemFailed(Error, OSError):
    """The system has no more memory or descriptors, or failed otherwise."""
