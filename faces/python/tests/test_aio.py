"""asyncio: tasks wait by the descriptor, several at a time, and may be cancelled."""

from __future__ import annotations

import asyncio
import threading

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


def test_fences_of_every_sender() -> None:
    async def main() -> None:
        with hamlyn.open("alice", strategy="np") as alice, hamlyn.open() as me:
            log = alice.bind_stream("log", pieces=4, piece_bytes=64, limit_bytes=4096)
            group = alice.bind_group("whole", 100_000)
            group.begin_shared([50_000, 50_000])
            stream = me.connect_stream("alice/log", WAIT)
            members = [me.connect_group("alice/whole", WAIT) for _ in range(2)]
            stream.send(b"held back, perhaps")
            await asyncio.gather(
                stream.fence_async(),
                members[0].send_last_async(0, b"a" * 50_000),
                members[1].send_async(0, bytearray(b"b" * 20_000)),
            )
            # Nothing of it is under way any more.
            assert log.recv_bytes(0) == b"held back, perhaps"
            await members[1].send_last_async(20_000, b"c" * 30_000)
            await asyncio.gather(*(member.fence_async() for member in members), me.fence_async())
            assert bytes(group.recv(0)) == b"a" * 50_000 + b"b" * 20_000 + b"c" * 30_000
            await me.flush_async()
            await stream.flush_async()
            await stream.close_async()
            with pytest.raises(hamlyn.Closed):
                log.recv(WAIT)
            assert stream.closed
            # An empty part, and what is none.
            group.begin_shared([0])
            last = me.connect_group("alice/whole", WAIT)
            with pytest.raises(TypeError):
                await last.send_async(0, "text")
            await last.send_last_async(0, b"")
            assert len(group.recv(WAIT)) == 100_000

    asyncio.run(main())


def test_fences_tell_what_was_refused() -> None:
    async def main() -> None:
        with hamlyn.open("alice", strategy="np") as alice, hamlyn.open() as me:
            inbox = alice.bind_datagram("inbox")
            outbox = me.connect_datagram("alice/inbox", WAIT)
            log = alice.bind_stream("log")
            group = alice.bind_group("whole", 8)
            group.begin_shared([8])
            senders = [me.connect_stream("alice/log", WAIT), me.connect_group("alice/whole", WAIT)]
            for sender in senders:
                outbox.send(b"taken")
                outbox.send(b"refused")
                with pytest.raises(hamlyn.Refused):
                    await sender.fence_async()
                assert inbox.recv_bytes(WAIT) == b"taken"
            outbox.send(b"taken")
            outbox.send(b"refused")
            with pytest.raises(hamlyn.Refused):
                await me.fence_async()
            del log

    asyncio.run(main())


def test_a_fence_that_is_cancelled_and_what_is_sent_meanwhile() -> None:
    async def main() -> None:
        with hamlyn.open("alice") as alice, hamlyn.open() as me:
            log = alice.bind_stream("log")
            sender = me.connect_stream("alice/log", WAIT)
            sender.send(b"first")
            # The receiver makes no call.
            fencing = asyncio.ensure_future(sender.fence_async())
            await asyncio.sleep(0.01)
            sender.send(b"meanwhile")
            assert not fencing.done()
            fencing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await fencing

            async def answer() -> None:
                while True:
                    alice.poll()
                    await asyncio.sleep(0)

            answering = asyncio.ensure_future(answer())
            await sender.fence_async()
            answering.cancel()
            assert [log.recv_bytes(0), log.recv_bytes(0)] == [b"first", b"meanwhile"]
            sender.send(b"not answered")
            fencing = asyncio.ensure_future(sender.fence_async())
            await asyncio.sleep(0.01)
            me.close()
            with pytest.raises(hamlyn.HandleClosed):
                await fencing

    asyncio.run(main())


def test_calls_that_are_started() -> None:
    async def main() -> None:
        with hamlyn.open("alice") as alice, hamlyn.open() as me:
            service = alice.bind_service("echo", outstanding=2)
            client = me.connect_service("alice/echo", WAIT)
            first = await client.start_async(b"first")
            second = await client.start_async(b"second")
            third = asyncio.ensure_future(client.start_async(b"third"))
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.reply_async(second), 0.01)

            async def answer() -> None:
                for _ in range(3):
                    call = await service.recv_async()
                    call.reply(call)

            answering = asyncio.ensure_future(answer())
            assert await client.reply_async(second) == b"second"
            assert await client.reply_async(first) == b"first"
            assert await client.reply_async(await third) == b"third"
            await answering
            with pytest.raises(hamlyn.Released):
                await client.reply_async(first)
            with pytest.raises(TypeError):
                client.reply_async(5)

    asyncio.run(main())


def test_publishers() -> None:
    async def main() -> None:
        with hamlyn.open("camera") as camera, hamlyn.open() as me:
            frames = camera.bind_publisher("frames", message_bytes=100, chunks=2, depth=1)
            reader = me.connect_subscriber("camera/frames", WAIT)

            async def publish() -> None:
                assert await frames.await_readers_async(1) == 1
                for number in range(20):
                    if number % 2:
                        assert (await frames.publish_async(b"%d" % number)).readers == 1
                    else:
                        loan = await frames.loan_async(2)
                        memoryview(loan)[:] = b"%02d" % number
                        loan.publish()
                await frames.flush_async()

            async def read() -> None:
                for number in range(20):
                    sample = await reader.recv_async()
                    assert int(bytes(sample)) == number
                    sample.release()

            await asyncio.gather(read(), publish())
            with pytest.raises(hamlyn.TooLong):
                await frames.publish_async(bytes(101))
            with pytest.raises(TypeError):
                await frames.publish_async("text")

    asyncio.run(main())


def test_arrivals_in_queues() -> None:
    async def main() -> None:
        with hamlyn.open("alice") as alice, hamlyn.open() as me:
            queue = alice.interface.open_queue(8)
            slot = alice.interface.open_slot(alice.interface.allocate(64), queue=queue)
            target = me.interface.target(slot.ticket(), WAIT)
            waiting = asyncio.ensure_future(alice.interface.rcv_async(queue))
            await asyncio.sleep(0.01)
            me.interface.send_msg(target, b"x", word=5)
            assert (await waiting).word == 5

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


class Counting:
    """A sender whose looks for room are counted."""

    def __init__(self, sender: hamlyn.StreamSender) -> None:
        self.manager, self.sender, self.looks = sender.manager, sender, 0

    def send(self, data: bytes, timeout: float) -> None:
        self.looks += 1
        self.sender.send(data, timeout)


def test_a_task_without_room_sleeps() -> None:
    async def main() -> None:
        with hamlyn.open("alice", strategy="np") as alice, hamlyn.open() as me:
            log = alice.bind_stream("log", pieces=1, piece_bytes=64, limit_bytes=64)
            sender = Counting(await me.connect_stream_async("alice/log", WAIT))

            async def fill() -> None:
                while True:
                    await hamlyn.aio.send(sender, (bytes(64),))

            task = asyncio.create_task(fill())
            await asyncio.sleep(2)
            # The pauses double up to a second; a look each millisecond would be 2,000.
            assert 1 < sender.looks < 40
            task.cancel()
            del log

    asyncio.run(main())


def takes(go: threading.Event, taken: list[bytes]) -> None:
    with hamlyn.open("alice") as alice:
        log = alice.bind_stream("log", pieces=1, piece_bytes=64, limit_bytes=64)
        go.set()
        while len(taken) < 50:
            taken.append(log.recv_bytes(WAIT))


def test_room_wakes_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing else does in these tests' time.
    for name in ("_ROOM_PAUSE", "_LOOK_SECONDS"):
        monkeypatch.setattr(hamlyn.aio, name, 1000.0)
    go, taken = threading.Event(), []
    thread = threading.Thread(target=takes, args=(go, taken))
    thread.start()
    assert go.wait(WAIT)

    async def main() -> None:
        with hamlyn.open() as me:
            sender = await me.connect_stream_async("alice/log", WAIT)
            for number in range(50):
                await asyncio.wait_for(sender.send_async(bytes([number]) * 64), WAIT)
            await asyncio.wait_for(sender.close_async(), WAIT)

    asyncio.run(main())
    thread.join(WAIT)
    assert taken == [bytes([number]) * 64 for number in range(50)]


def test_a_reply_makes_room_for_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_ROOM_PAUSE", "_LOOK_SECONDS"):
        monkeypatch.setattr(hamlyn.aio, name, 1000.0)

    async def main() -> None:
        with hamlyn.open("alice") as alice, hamlyn.open() as me:
            service = alice.bind_service("echo", outstanding=1)
            client = await me.connect_service_async("alice/echo", WAIT)

            async def serve() -> None:
                async for call in service:
                    call.reply(call)

            server = asyncio.create_task(serve())
            calls = [client.call_async(b"%d" % number) for number in range(20)]
            assert await asyncio.wait_for(asyncio.gather(*calls), WAIT) == [b"%d" % number for number in range(20)]
            server.cancel()

    asyncio.run(main())
