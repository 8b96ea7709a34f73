"""The ways that are measured. Each has two ends; an end sends and receives messages of one length."""

from __future__ import annotations

import multiprocessing
import multiprocessing.shared_memory
import os
import tempfile
from typing import Any, Callable, Optional

import hamlyn

# Bytes at most in flight, of the ways that have such a limit.
_ROOM = 1 << 26


class Way:
    """A way to exchange messages. Made in the first process; `first` and `second` make the ends, in their processes."""

    name = ""

    def __init__(self, length: int) -> None:
        self.length = length

    def first(self) -> End:
        raise NotImplementedError

    def second(self) -> End:
        raise NotImplementedError

    def close(self) -> None:
        """Removes what both used."""


class End:
    """An end: what sends, what receives, what closes it, and what sends all that waits, if something may."""

    def __init__(
        self,
        send: Callable[[bytes], object],
        recv: Callable[[], Any],
        close: Callable[[], object],
        flush: Optional[Callable[[], object]] = None,
    ) -> None:
        self.send, self.recv, self.close, self.flush = send, recv, close, flush


class Stream(Way):
    """Two streams, one each way; received as bytes."""

    name = "hamlyn stream"

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.namespace = f"bench{os.getpid()}"

    def first(self) -> End:
        return self._end("a", "b")

    def second(self) -> End:
        return self._end("b", "a")

    def _end(self, own: str, other: str) -> End:
        manager = hamlyn.open(own, namespace=self.namespace)
        incoming = manager.bind_stream("in", limit_bytes=_ROOM)
        outgoing = manager.connect_stream(f"{other}/in", 60)

        def flush() -> None:
            outgoing.flush()
            manager.flush()

        return End(outgoing.send, incoming.recv_bytes, manager.close, flush)


class InPlace(Stream):
    """The same; received where they landed, and looked at there: the first and the last byte."""

    name = "hamlyn stream, in place"

    def _end(self, own: str, other: str) -> End:
        end = super()._end(own, other)
        manager_recv = end.recv.__self__.recv  # type: ignore[attr-defined]

        def recv() -> Any:
            record = manager_recv()
            view = memoryview(record)
            value = view[0] + view[-1]
            view.release()
            return value

        return End(end.send, recv, end.close, end.flush)


class Channel(Way):
    """`Channel`, of bytes."""

    name = "hamlyn Channel"

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.namespace = f"bench{os.getpid()}"

    def first(self) -> End:
        channel = hamlyn.Channel.bind("channel", namespace=self.namespace, limit_bytes=_ROOM)
        return End(channel.send, channel.recv, channel.close)

    def second(self) -> End:
        channel = hamlyn.Channel.connect("channel", 60, namespace=self.namespace, limit_bytes=_ROOM)
        return End(channel.send, channel.recv, channel.close)


class Loan(Way):
    """Loans: written in place by a copy, and looked at there."""

    name = "hamlyn loan, in place"

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.namespace = f"bench{os.getpid()}"

    def first(self) -> End:
        return self._end("a", "b")

    def second(self) -> End:
        return self._end("b", "a")

    def _end(self, own: str, other: str) -> End:
        manager = hamlyn.open(own, namespace=self.namespace)
        publisher = manager.bind_publisher("out", message_bytes=self.length, chunks=8, depth=4, readers=1)
        subscriber = manager.connect_subscriber(f"{other}/out", 60, trust_publisher=True)
        publisher.await_readers(1, 60)

        def recv() -> Any:
            sample = subscriber.recv()
            assert sample is not None
            view = memoryview(sample)
            value = view[0] + view[-1]
            view.release()
            return value


        def flush() -> None:
            publisher.flush()
            manager.flush()

        return End(publisher.publish, recv, manager.close, flush)


class Pipe(Way):
    """`multiprocessing.Pipe`, which pickles nothing here: `send_bytes`."""

    name = "multiprocessing.Pipe"

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.ends = multiprocessing.Pipe()

    def first(self) -> End:
        end = self.ends[0]
        return End(end.send_bytes, end.recv_bytes, end.close)

    def second(self) -> End:
        end = self.ends[1]
        return End(end.send_bytes, end.recv_bytes, end.close)

    def close(self) -> None:
        for end in self.ends:
            end.close()


class ZeroMq(Way):
    """ZeroMQ, a pair of sockets over ipc."""

    name = "ZeroMQ"

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.directory = tempfile.TemporaryDirectory()
        self.address = f"ipc://{self.directory.name}/socket"

    def first(self) -> End:
        return self._end(True)

    def second(self) -> End:
        return self._end(False)

    def _end(self, binds: bool) -> End:
        import zmq

        context = zmq.Context()
        socket = context.socket(zmq.PAIR)
        (socket.bind if binds else socket.connect)(self.address)

        def close() -> None:
            socket.close()
            context.term()

        def send_in_place(data: bytes) -> None:
            socket.send(data, copy=False)

        return End(socket.send if self.length < 65536 else send_in_place, socket.recv, close)

    def close(self) -> None:
        self.directory.cleanup()


class SharedMemory(Way):
    """`multiprocessing.shared_memory`: a buffer and a flag each way, which both processes poll; one message at a time."""

    name = "shared_memory, polled"

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.memory = multiprocessing.shared_memory.SharedMemory(create=True, size=2 * (64 + length))

    def first(self) -> End:
        return self._end(0, 64 + self.length)

    def second(self) -> End:
        return self._end(64 + self.length, 0)

    def _end(self, out: int, into: int) -> End:
        memory = multiprocessing.shared_memory.SharedMemory(self.memory.name)
        buffer: Any = memory.buf
        length = self.length

        def send(data: bytes) -> None:
            while buffer[out]:
                pass
            buffer[out + 64 : out + 64 + length] = data
            buffer[out] = 1

        def recv() -> bytes:
            while not buffer[into]:
                pass
            data = bytes(buffer[into + 64 : into + 64 + length])
            buffer[into] = 0
            return data

        def close() -> None:
            memory.close()

        return End(send, recv, close)

    def close(self) -> None:
        self.memory.close()
        self.memory.unlink()


def ways() -> list[type[Way]]:
    """All ways that there are on this machine."""
    found: list[type[Way]] = [Stream, InPlace, Channel, Loan, Pipe, SharedMemory]
    try:
        import zmq  # noqa: F401
    except ImportError:
        pass
    else:
        found.append(ZeroMq)
    return found


def version_of(way: type[Way]) -> Optional[str]:
    """The version of the library of a way, if it has one of its own."""
    if way is ZeroMq:
        import zmq

        return f"pyzmq {zmq.__version__}, libzmq {zmq.zmq_version()}"
    return None
