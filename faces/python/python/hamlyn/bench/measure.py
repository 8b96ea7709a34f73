"""Measuring a way: two processes, one of which answers."""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

from .ways import End, Way

_context = multiprocessing.get_context("fork")
# What the answering process is told between two measurements.
_ROUND_TRIPS, _RECEIVE, _END = b"r", b"t", b"e"


def _answer(way: Way, orders: Any) -> None:
    """The second process."""
    end = way.second()
    payload = bytes(way.length)
    while True:
        order, count = orders.recv()
        if order == _ROUND_TRIPS:
            for _ in range(count):
                end.recv()
                end.send(payload)
        elif order == _RECEIVE:
            for _ in range(count):
                end.recv()
            orders.send(time.perf_counter())
        else:
            orders.send(None)
            end.close()
            return


class Session:
    """A way under measurement."""

    def __init__(self, kind: type[Way], length: int) -> None:
        self.way = kind(length)
        self.payload = bytes(length)
        self.orders, theirs = _context.Pipe()
        # The second process is forked before the first has anything open.
        self.process = _context.Process(target=_answer, args=(self.way, theirs), daemon=True)
        self.process.start()
        self.end: End = self.way.first()
        self.round_trips(10)

    def round_trips(self, count: int) -> float:
        """Seconds for so many round trips."""
        self.orders.send((_ROUND_TRIPS, count))
        send, recv, payload = self.end.send, self.end.recv, self.payload
        begun = time.perf_counter()
        for _ in range(count):
            send(payload)
            recv()
        return time.perf_counter() - begun

    def send_many(self, count: int) -> float:
        """Seconds from the first of so many messages to the receipt of the last."""
        self.orders.send((_RECEIVE, count))
        send, payload = self.end.send, self.payload
        begun = time.perf_counter()
        for _ in range(count):
            send(payload)
        if self.end.flush is not None:
            self.end.flush()
        ended: float = self.orders.recv()
        return ended - begun

    def close(self) -> None:
        """Ends it."""
        self.orders.send((_END, 0))
        self.orders.recv()
        self.end.close()
        self.process.join()
        self.way.close()


def measure(kind: type[Way], length: int, seconds: float) -> dict[str, float]:
    """One way at one length: nanoseconds one way, and messages each second."""
    session = Session(kind, length)
    try:
        trip = session.round_trips(20) / 20
        count = max(10, int(seconds / 2 / trip))
        one_way = session.round_trips(count) / count / 2
        many = session.send_many(100) / 100
        count = max(100, int(seconds / 2 / many))
        each = session.send_many(count) / count
    finally:
        session.close()
    return {"one_way_ns": one_way * 1e9, "messages_per_second": 1 / each}
