"""asyncio: tasks wait for end points by the descriptor of their manager, without a thread.

Programs need nothing of this module: end points have `recv_async` and its like, and `async for`. A task asks its end point, and if there is
nothing, it waits until something has happened at the manager. While a task waits, the manager is prepared to sleep and its descriptor is
watched by the running loop; whatever comes wakes all tasks of that manager, and each asks again.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

from ._hamlyn import Manager
from .dtypes import octets
from .errors import Closed, TimedOut

if TYPE_CHECKING:
    from ._hamlyn import (
        Client,
        Completion,
        CompletionQueue,
        Event,
        GroupSender,
        Interface,
        Loan,
        Notification,
        Operation,
        Pending,
        Published,
        Publisher,
        Queue,
        StreamSender,
    )

R = TypeVar("R")

# A task looks again after so long, whatever happens: its manager or end point may have been closed.
_LOOK_SECONDS = 1.0
# So does a sender that waits for room, at first after less, then after twice as long each time:
# what the program itself gives back, in calls of its own, is no event of the manager.
_ROOM_PAUSE = 0.001
# While nobody is there to connect to, a task looks again after so long, and then after twice as long each time, up to the second.
_PAUSE = 0.0005
_PAUSE_MOST = 0.016


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


def _manager_of(end: Any) -> Manager:
    return end if isinstance(end, Manager) else end.manager  # type: ignore[no-any-return]


async def _until_room(end: Any, act: Callable[[], R]) -> R:
    """What `act` returns, which is tried again as long as there is no room."""
    driver = _driver_of(_manager_of(end))
    pause = _ROOM_PAUSE
    while True:
        try:
            return act()
        except TimedOut:
            await driver.activity(pause)
            pause = min(2 * pause, _LOOK_SECONDS)


async def rcv(interface: Interface, queue: Queue) -> Notification:
    """The next arrival in a queue."""
    return await _until(interface.manager, lambda: interface.rcv(queue, 0))


async def next_completion(queue: CompletionQueue) -> Completion:
    """The next completion of a queue."""
    return await _until(queue.manager, lambda: queue.next(0))


async def finish(manager: Manager, operation: Operation[R]) -> R:
    """The result of a one-sided operation."""
    await _until(manager, lambda: operation.is_done or None)
    return operation.finish(0)


async def send(end: Any, arguments: tuple[Any, ...]) -> None:
    """Sends when there is room."""
    await _until_room(end, lambda: end.send(*arguments, timeout=0))


async def send_part(member: GroupSender, offset: int, data: Any, is_last: bool) -> None:
    """Sends a stretch of a group's part, in shorter ones each of which is sent whole or not at all."""
    stretches = octets(data)
    sent = 0
    while True:
        stretch = stretches[sent : sent + member.stretch_bytes_max]
        ends = sent + len(stretch) == len(stretches)
        send = member.send_last if is_last and ends else member.send
        await _until_room(member, lambda: send(offset + sent, stretch, timeout=0))
        sent += len(stretch)
        if ends:
            return


async def flush(end: Any) -> None:
    """Sends what was held back, or waits until all has left."""
    await _until_room(end, lambda: end.flush(0))


async def close(sender: StreamSender) -> None:
    """Flushes and closes a stream."""
    await _until_room(sender, lambda: sender.close(0))


async def drive(end: Any, step: Any) -> None:
    """Awaits a future of the library."""
    await _until(_manager_of(end), lambda: True if step.poll() else None)


async def flush_and_drive(sender: StreamSender, step: Any) -> None:
    """Awaits a future of the library when all that was held back has left."""
    await flush(sender)
    await drive(sender, step)


async def connect(connecting: Any) -> Any:
    """Connects. The library waits for a peer's answer in the thread that asks, so that is one of the loop's executor."""
    pause = _PAUSE
    try:
        while True:
            if connecting.look() == "absent":
                await asyncio.sleep(pause)
                pause = min(2 * pause, _PAUSE_MOST)
            elif await _answer(connecting) == "connected":
                return connecting.made()
    finally:
        connecting.give_up()


async def _answer(connecting: Any) -> str:
    """Waits for a peer's answer in another thread. If the task is cancelled, nothing is under way any more when this raises."""
    waiting = asyncio.get_running_loop().run_in_executor(None, connecting.wait)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        connecting.give_up()
        await asyncio.wait([waiting])
        if not waiting.cancelled():
            # Nobody asks any more how it ended.
            waiting.exception()
        raise


async def start(client: Client, request: Any) -> Pending:
    """Sends a request when there is room."""
    return await _until_room(client, lambda: client.start(request, 0))


async def reply(client: Client, pending: Pending) -> bytes:
    """A copy of a reply, as other tasks may take the client's next one before this is looked at."""

    def look() -> Optional[bytes]:
        reply = client.reply(pending, 0)
        return None if reply is None else reply.tobytes()

    found = await _until(client.manager, look)
    # Another task may wait for the place of this call.
    _driver_of(client.manager)._wake()
    return found


async def call(client: Client, request: Any) -> bytes:
    """Calls a service."""
    return await reply(client, await start(client, request))


async def loan(publisher: Publisher, length: int) -> Loan:
    """A loan, when a chunk is free and readers have room."""
    return await _until_room(publisher, lambda: publisher.loan(length, 0))


async def publish(publisher: Publisher, data: Any) -> Published:
    """Publishes a copy, when a chunk is free and readers have room."""
    (await loan(publisher, len(octets(data)))).release()
    # Nobody else has taken what was free just now.
    return publisher.publish(data, 0)


async def await_readers(publisher: Publisher, readers: int) -> int:
    """Waits until there are so many readers."""

    def look() -> Optional[int]:
        there = publisher.await_readers(readers, 0)
        return there if there >= readers else None

    return await _until(publisher.manager, look)
