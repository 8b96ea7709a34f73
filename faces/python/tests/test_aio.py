"""asyncio: tasks wait by the descriptor, several at a time, and may be cancelled."""

from __future__ import annotations

import asyncio

import pytest
from conftest import running

import hamlyn

WAIT = 60


async def answering_main() -> None:
    with hamlyn.open("alice") as alice:
        service = alice.bind_service("echo", outstanding=16)
        log = alice.bind_stream("log")
        inbox = alice.bind_datagram("inbox")

        async def answer() -> None:
            async for call in service:
                if len(call) == 0:
                    call.reply()
                    return
                call.reply(call)

        async def read() -> int:
            return sum([len(record) async for record in log])

        async def take() -> bytes:
            return (await inbox.recv_async()).tobytes()

        _, total, datagram = await asyncio.gather(answer(), read(), take())
        assert total == 100_000 and datagram == b"hello"
        # The last reply leaves before the end.
        alice.flush(WAIT)


def answering() -> None:
    asyncio.run(answering_main())


def test_tasks() -> None:
    async def main() -> None:
        with hamlyn.open() as me:
            client = me.connect_service("alice/echo", WAIT)
            log = me.connect_stream("alice/log", WAIT)
            outbox = me.connect_datagram("alice/inbox", WAIT)

            async def ask(number: int) -> None:
                assert await client.call_async(b"%d" % number) == b"%d" % number

            async def write() -> None:
                for _ in range(100):
                    await log.send_async(bytes(1000))
                log.close()

            await outbox.send_async(b"hello")
            await outbox.fence_async()
            await asyncio.gather(write(), *(ask(number) for number in range(200)))
            await client.call_async(b"")

    with running(answering):
        asyncio.run(main())


def test_cancelled_tasks_lose_nothing() -> None:
    async def main() -> None:
        with hamlyn.open("alice") as alice:
            inbox = alice.bind_datagram("inbox")
            outbox = alice.connect_datagram("alice/inbox", WAIT)
            for _ in range(3):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(inbox.recv_async(), 0.01)
            waiting = asyncio.ensure_future(inbox.recv_async())
            await asyncio.sleep(0.01)
            outbox.send(b"first")
            assert bytes(await waiting) == b"first"
            waiting = asyncio.ensure_future(inbox.recv_async())
            await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            outbox.send(b"second")
            assert bytes(await inbox.recv_async()) == b"second"

    asyncio.run(main())


def test_several_managers_and_loops() -> None:
    async def main() -> None:
        with hamlyn.open("alice") as alice, hamlyn.open("bob") as bob:
            ends = [manager.bind_datagram("inbox") for manager in (alice, bob)]
            with hamlyn.open() as me:
                tasks = [asyncio.ensure_future(end.recv_async()) for end in ends]
                await asyncio.sleep(0)
                for name in ("alice", "bob"):
                    me.connect_datagram(f"{name}/inbox", WAIT).send(name.encode())
                me.flush(WAIT)
                assert [bytes(message) for message in await asyncio.gather(*tasks)] == [b"alice", b"bob"]
                event = await alice.next_event_async()
                assert event.kind == "peer_arrived"

    for _ in range(3):
        asyncio.run(main())


def test_a_full_stream() -> None:
    async def main() -> None:
        with hamlyn.open("alice") as alice, hamlyn.open() as me:
            log = alice.bind_stream("log", pieces=4, piece_bytes=64, limit_bytes=256)
            sender = me.connect_stream("alice/log", WAIT)

            async def write() -> None:
                for number in range(200):
                    await sender.send_async(b"%03d" % number * 20)
                sender.close()

            async def read() -> None:
                number = 0
                async for record in log:
                    assert bytes(record) == b"%03d" % number * 20
                    number += 1
                    await asyncio.sleep(0)
                assert number == 200

            await asyncio.gather(write(), read())

    asyncio.run(main())


def test_errors_reach_the_task() -> None:
    async def main() -> None:
        with hamlyn.open("alice") as alice:
            inbox = alice.bind_datagram("inbox")
            waiting = asyncio.ensure_future(inbox.recv_async())
            await asyncio.sleep(0.01)
            inbox.close()
            with pytest.raises(hamlyn.HandleClosed):
                await waiting
            other = alice.bind_datagram("other")
            waiting = asyncio.ensure_future(other.recv_async())
            await asyncio.sleep(0.01)
            alice.close()
            with pytest.raises(hamlyn.HandleClosed):
                await waiting

    asyncio.run(main())
