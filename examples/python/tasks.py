"""Tasks of asyncio: one manager, several end points, each with a task that awaits it. No thread is needed, and no call blocks the loop.

    python tasks.py listen 3        # ends after three messages, whichever way they come
    python tasks.py say "over here"
    python tasks.py count 7
"""

from __future__ import annotations

import asyncio
import sys

import hamlyn


async def listen(count: int) -> None:
    with hamlyn.open("listener") as listener:
        inbox = listener.bind_datagram("texts", 256)
        tags = listener.bind_tagged_write("numbers", area_bytes=64, tags=64)
        lines: asyncio.Queue[str] = asyncio.Queue()

        async def texts() -> None:
            async for message in inbox:
                lines.put_nowait(bytes(message).decode())

        async def numbers() -> None:
            async for tag in tags:
                lines.put_nowait(f"number {int(tag)}")

        tasks = [asyncio.ensure_future(texts()), asyncio.ensure_future(numbers())]
        for _ in range(count):
            print(await lines.get(), flush=True)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def say(text: str) -> None:
    with hamlyn.open() as me:
        me.connect_datagram("listener/texts", timeout=10).send(text.encode())
        me.flush(timeout=10)


def count(number: int) -> None:
    with hamlyn.open() as me:
        me.connect_tagged_write("listener/numbers", timeout=10).send(0, b"", number)
        me.flush(timeout=10)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "listen":
        asyncio.run(listen(int(sys.argv[2])))
    elif len(sys.argv) == 3 and sys.argv[1] == "say":
        say(sys.argv[2])
    elif len(sys.argv) == 3 and sys.argv[1] == "count":
        count(int(sys.argv[2]))
    else:
        sys.exit("usage: tasks.py listen COUNT | tasks.py say TEXT | tasks.py count NUMBER")
