"""asyncio: tasks wait for end points by the descriptor of their manager, without a thread.

Programs need nothing of this module: end points have `recv_async` and its like, and `async for`. A task asks its end point, and if there is
nothing, it waits until something has happened at the manager. While a task waits, the manager is prepared to sleep and its descriptor is
watched by the running loop; whatever comes wakes all tasks of that manager, and each asks again.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

from .errors import Closed, TimedOut

if TYPE_CHECKING:
    from ._hamlyn import Event, Manager, Pending

R = TypeVar("R")

# A task looks again after so long, whatever happens: its manager or end point may have been closed.
_LOOK_SECONDS = 1.0
# A sender that waits for room looks again after so long, whatever happens.
_ROOM_WAIT = 0.001


class _Driver:
    """Wakes the tasks of one loop that wait for one manager."""

    def __init__(self, manager: Manager, loop: asyncio.AbstractEventLoop) -> None:
        self._manager = weakref.ref(manager)
        self._loop = loop
        self._descriptor = manager.fileno()
        self._waiting: set[asyncio.Future[None]] = set()
        self._sleep: Any = None
        self._timer: Optional[asyncio.TimerHandle] = None
        self._is_watching = False

    async def activity(self, most: Optional[float] = None) -> None:
        """Waits until something may have happened; for so many seconds at most."""
        future: asyncio.Future[None] = self._loop.create_future()
        timer = None
        if most is not None:
            timer = self._loop.call_later(most, _resolve, future)
        self._waiting.add(future)
        try:
            self._arm()
            await future
        finally:
            self._waiting.discard(future)
            if timer is not None:
                timer.cancel()
            if not self._waiting:
                self._disarm()

    def _arm(self) -> None:
        """Prepares to sleep, if there is none who does."""
        if self._sleep is not None:
            return
        manager = self._manager()
        if manager is None:
            self._wake()
            return
        sleep = manager.prepare_sleep()
        if sleep is None:
            self._wake()
            return
        self._sleep = sleep
        if not self._is_watching:
            self._loop.add_reader(self._descriptor, self._awake)
            self._is_watching = True
        timeout = _LOOK_SECONDS if sleep.timeout is None else min(sleep.timeout, _LOOK_SECONDS)
        self._timer = self._loop.call_later(timeout, self._awake)

    def _awake(self) -> None:
        """The descriptor is readable, or the time is over."""
        self._end_sleep()
        self._wake()
        if not self._waiting:
            self._disarm()

    def _end_sleep(self) -> None:
        sleep, self._sleep = self._sleep, None
        if sleep is not None:
            sleep.end()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        for future in self._waiting:
            _resolve(future)

    def _disarm(self) -> None:
        self._end_sleep()
        if self._is_watching:
            self._is_watching = False
            self._loop.remove_reader(self._descriptor)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


_drivers: weakref.WeakKeyDictionary[Manager, _Driver] = weakref.WeakKeyDictionary()


def _driver_of(manager: Manager) -> _Driver:
    loop = asyncio.get_running_loop()
    driver = _drivers.get(manager)
    if driver is None or driver._loop is not loop:
        driver = _drivers[manager] = _Driver(manager, loop)
    return driver


async def _until(manager: Manager, look: Callable[[], Optional[R]]) -> R:
    """What `look` finds, which is asked whenever something has happened."""
    driver = _driver_of(manager)
    while True:
        found = look()
        if found is not None:
            return found
        await driver.activity()


async def recv(end: Any) -> Any:
    """The next message of an end point."""
    return await _until(end.manager, lambda: end.recv(0))


async def next_of(end: Any) -> Any:
    """The next message of an end point, for `async for`: ends when the sender has closed."""
    try:
        return await recv(end)
    except Closed:
        raise StopAsyncIteration from None


async def next_event(manager: Manager) -> Event:
    """The next event of a manager."""
    return await _until(manager, lambda: manager.next_event(0))


async def send(end: Any, arguments: tuple[Any, ...]) -> None:
    """Sends when there is room."""
    driver = _driver_of(end.manager)
    while True:
        try:
            return end.send(*arguments, timeout=0)  # type: ignore[no-any-return]
        except TimedOut:
            await driver.activity(_ROOM_WAIT)


async def drive(end: Any, step: Any) -> None:
    """Awaits a future of the library."""
    await _until(end.manager, lambda: True if step.poll() else None)


async def call(client: Any, request: Any) -> bytes:
    """Calls a service. The reply is copied, as other tasks may take the client's next one before this is looked at."""
    driver = _driver_of(client.manager)
    pending: Optional[Pending] = None
    while pending is None:
        try:
            pending = client.start(request, timeout=0)
        except TimedOut:
            await driver.activity(_ROOM_WAIT)

    def look() -> Optional[bytes]:
        reply = client.reply(pending, 0)
        return None if reply is None else reply.tobytes()

    return await _until(client.manager, look)
