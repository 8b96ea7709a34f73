"""asyncio: connecting, in either order, beside other tasks; cancelled, given up, and to what there is not."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import signal
import threading
import time
from typing import Any

import pytest
from conftest import doomed, running
from test_hosts import free_ports, network

import hamlyn
import hamlyn.aio

WAIT = 60


class Counting(concurrent.futures.ThreadPoolExecutor):
    """Knows which calls were begun, so that a test sees whether one is under way."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[concurrent.futures.Future[Any]] = []

    def submit(self, *arguments: Any, **keywords: Any) -> concurrent.futures.Future[Any]:
        future = super().submit(*arguments, **keywords)
        self.begun.append(future)
        return future


async def until_waiting(executor: Counting) -> None:
    """A task waits for a peer's answer."""
    while not executor.begun or executor.begun[-1].done():
        await asyncio.sleep(0)


def stop(process: int) -> None:
    """Stops a process, and waits until none of its threads runs any more."""
    os.kill(process, signal.SIGSTOP)

    def runs(thread: str) -> bool:
        with open(f"/proc/{process}/task/{thread}/stat") as stat:
            # The state is behind the name, which may have spaces.
            return not stat.read().rpartition(")")[2].startswith(" T")

    while any(runs(thread) for thread in os.listdir(f"/proc/{process}/task")):
        time.sleep(0)


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be awaited is returned, to be asked step by step."""
    monkeypatch.setattr(hamlyn.aio, "connect", lambda connecting: connecting)


def end(connecting: Any) -> str:
    """Steps until it is connected."""
    while connecting.look() != "unanswered" or connecting.wait() != "connected":
        pass
    return "connected"


def every_end_point() -> None:
    with hamlyn.open("alice", strategy="np") as alice:
        inbox, log, table = alice.bind_datagram("inbox"), alice.bind_stream("log"), alice.bind_tagged_write("table", 64)
        group, service = alice.bind_group("whole", 5), alice.bind_service("echo")
        frames, box = alice.bind_publisher("frames", message_bytes=64), alice.bind_mailbox("box")
        group.begin_shared([5])
        area, queue = alice.interface.allocate(64), alice.interface.open_queue(4)
        slot = alice.interface.open_slot(area, queue=queue)
        alice.offer("ticket", bytes(slot.ticket()))
        assert inbox.recv_bytes(WAIT) == b"datagram"
        assert log.recv_bytes(WAIT) == b"record"
        assert int(table.recv(WAIT)) == 7
        assert box.recv_bytes(WAIT) == b"mail"
        assert bytes(group.recv(WAIT)) == b"parts"
        service.recv(WAIT).reply(b"reply")
        assert alice.interface.rcv(queue, WAIT).word == 9
        assert frames.await_readers(1, WAIT) == 1
        frames.publish(b"frame", WAIT)
        frames.flush(WAIT)
        with pytest.raises(hamlyn.Closed):
            log.recv(WAIT)


@pytest.mark.parametrize("strategy", ["proc", "np"])
def test_every_end_point_may_come_later(strategy: str) -> None:
    async def main() -> None:
        with hamlyn.open(strategy=strategy) as me:
            connected = asyncio.gather(
                me.connect_datagram_async("alice/inbox"),
                me.connect_stream_async("alice/log"),
                me.connect_tagged_write_async("alice/table"),
                me.connect_mailbox_async("alice/box"),
                me.connect_group_async("alice/whole"),
                me.connect_service_async("alice/echo"),
                me.connect_subscriber_async("alice/frames", trust_publisher=True),
                me.ask_async("alice", "ticket"),
            )
            # All of them have looked, and found nobody.
            await asyncio.sleep(0)
            with running(every_end_point):
                outbox, log, table, box, group, client, viewer, ticket = await connected
                assert isinstance(viewer, hamlyn.Subscriber) and viewer.manager is me
                viewer.recv(0)
                await outbox.send_async(b"datagram")
                await log.send_async(b"record")
                await table.send_async(0, b"row", 7)
                await box.send_async(b"mail")
                await group.send_last_async(0, b"parts")
                assert await client.call_async(b"request") == b"reply"
                target = await me.interface.target_async(hamlyn.Ticket(ticket))
                me.interface.send_msg(target, b"message", word=9)
                assert bytes(await viewer.recv_async()) == b"frame"
                await log.close_async()

    asyncio.run(main())


def test_by_ticket_seed_and_member() -> None:
    async def main() -> None:
        with hamlyn.open("alice") as alice, hamlyn.open() as me:
            inbox, log, table, group = (
                alice.open_datagram(),
                alice.open_stream(),
                alice.bind_tagged_write("table", 64),
                alice.bind_group("whole", 4),
            )
            outbox = await me.connect_datagram_async(inbox.ticket)
            sender = await me.connect_stream_async(log.seed, WAIT)
            writer = await me.connect_tagged_write_async(table.ticket_for(8, 8))
            member = await me.connect_group_async(group.begin())
            outbox.send(b"datagram")
            sender.send(b"record")
            writer.send(0, b"row", 1)
            member.send_last(0, b"part")
            assert bytes(await inbox.recv_async()) == b"datagram" and bytes(await log.recv_async()) == b"record"
            assert int(await table.recv_async()) == 1 and table.area.read(8, 3) == b"row"
            assert bytes(await group.recv_async()) == b"part"
            # To oneself, and under an item that is bound later.
            later = asyncio.ensure_future(alice.connect_datagram_async("alice/later"))
            other = asyncio.ensure_future(me.connect_datagram_async("alice/later"))
            await asyncio.sleep(0)
            bound = alice.bind_datagram("later")
            for outbox in await asyncio.gather(later, other):
                outbox.send(b"hello")
                assert bytes(await bound.recv_async()) == b"hello"
                bound.recv(0)

    asyncio.run(main())


def on_two(ports: list[int]) -> None:
    async def main() -> None:
        with hamlyn.open(network=network(1, ports)) as me:
            late = asyncio.ensure_future(me.connect_datagram_async("one/alice/late", WAIT))
            log, client, ticket = await asyncio.gather(
                me.connect_stream_async("one/alice/log", WAIT),
                me.connect_service_async("one/alice/echo", WAIT),
                me.ask_async("one/alice", "ticket", WAIT),
            )
            log.send(b"record")
            assert await client.call_async(b"request") == b"reply"
            await me.interface.target_async(hamlyn.Ticket(ticket), WAIT)
            await (await late).send_async(b"late")
            await me.flush_async()
            # Of another host the library tells no more than that it has not answered.
            with pytest.raises((hamlyn.NotFound, hamlyn.TimedOut), match="one/nobody"):
                await me.connect_datagram_async("one/nobody/inbox", 0.5)

    asyncio.run(main())


def test_between_hosts() -> None:
    ports = free_ports(2)
    with hamlyn.open("alice", network=network(0, ports)) as alice, running(on_two, ports):
        log, service = alice.bind_stream("log"), alice.bind_service("echo")
        inbox = alice.open_datagram()
        alice.offer("ticket", bytes(inbox.ticket))
        service.recv(WAIT).reply(b"reply")
        assert log.recv_bytes(WAIT) == b"record"
        late = alice.bind_datagram("late")
        assert late.recv_bytes(WAIT) == b"late"


def test_loops_that_share_a_manager() -> None:
    with hamlyn.open("alice", strategy="np") as alice, hamlyn.open(shared=True) as me:
        inbox = alice.bind_tagged_write("table", 64)

        async def main(me: hamlyn.Manager) -> None:
            for _ in range(10):
                with await me.connect_tagged_write_async("alice/table", WAIT) as writer:
                    await writer.send_async(0, b"row", 1)

        def loop(handle: hamlyn.Manager) -> None:
            with handle:
                asyncio.run(main(handle))

        threads = [threading.Thread(target=loop, args=(me.share(),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        asyncio.run(main(me))
        for thread in threads:
            thread.join()
        assert [int(inbox.recv(WAIT)) for _ in range(50)] == [1] * 50


def stopped_peer() -> None:
    with hamlyn.open("alice") as alice:
        inbox = alice.bind_datagram("inbox")
        while True:
            inbox.recv()


def test_other_tasks_go_on_while_a_peer_does_not_answer() -> None:
    async def main() -> None:
        with hamlyn.open("me") as me, hamlyn.open() as other:
            service, client = me.bind_service("echo"), other.connect_service("me/echo", WAIT)

            async def serve() -> None:
                async for call in service:
                    call.reply(call)

            serving = asyncio.ensure_future(serve())
            with doomed(stopped_peer) as peer:
                first = await me.connect_datagram_async("alice/inbox", WAIT)
                first.close()
                stop(peer.pid)
                executor = Counting()
                asyncio.get_running_loop().set_default_executor(executor)
                # One by which nothing is known of it.
                connecting = asyncio.ensure_future(other.connect_datagram_async("alice/inbox"))
                await until_waiting(executor)
                # As many as would take minutes if the loop waited for the peer in between.
                for number in range(500):
                    assert await client.call_async(b"%d" % number) == b"%d" % number
                assert not connecting.done()
                os.kill(peer.pid, signal.SIGCONT)
                (await connecting).send(b"hello")
            serving.cancel()

    asyncio.run(main())


def test_a_cancelled_task_leaves_nothing_under_way() -> None:
    async def main() -> None:
        with hamlyn.open("alice") as alice, hamlyn.open() as me:
            executor = Counting()
            asyncio.get_running_loop().set_default_executor(executor)
            # Nobody is there.
            connecting = asyncio.ensure_future(me.connect_stream_async("bob/log"))
            await asyncio.sleep(0.01)
            connecting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await connecting
            assert not executor.begun
            # The peer is there, and has not bound the item.
            connecting = asyncio.ensure_future(me.connect_stream_async("alice/log"))
            await until_waiting(executor)
            connecting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await connecting
            assert all(future.done() for future in executor.begun)
            # A stream is for the one sender that connects first.
            log = alice.bind_stream("log")
            (await me.connect_stream_async("alice/log", WAIT)).send(b"the only one")
            assert bytes(await log.recv_async()) == b"the only one"
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(me.connect_service_async("alice/echo"), 0.05)
            assert all(future.done() for future in executor.begun)

    asyncio.run(main())


def test_what_was_connected_and_given_up_is_closed(apart: None) -> None:
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        log = alice.bind_stream("log")
        connecting: Any = me.connect_stream_async("alice/log", WAIT)
        assert end(connecting) == "connected"
        connecting.give_up()
        with pytest.raises(hamlyn.Closed):
            log.recv(WAIT)
        for ask in (connecting.look, connecting.wait, connecting.made):
            with pytest.raises(hamlyn.HandleClosed):
                ask()
        connecting.give_up()
        # One that is deleted is closed, too; the object is made once.
        log = alice.bind_stream("another")
        connecting = me.connect_stream_async("alice/another", WAIT)
        end(connecting)
        del connecting
        with pytest.raises(hamlyn.Closed):
            log.recv(WAIT)
        connecting = me.connect_datagram_async(alice.open_datagram().ticket, WAIT)
        end(connecting)
        assert isinstance(connecting.made(), hamlyn.DatagramSender)
        with pytest.raises(hamlyn.HandleClosed):
            connecting.made()


def test_a_manager_that_is_closed_meanwhile() -> None:
    async def main() -> None:
        with hamlyn.open("alice"):
            for item in ("bob/absent", "alice/absent"):
                me = hamlyn.open("me")
                executor = Counting()
                asyncio.get_running_loop().set_default_executor(executor)
                connecting = asyncio.ensure_future(me.connect_service_async(item))
                if item == "alice/absent":
                    await until_waiting(executor)
                else:
                    await asyncio.sleep(0)
                me.close()
                with pytest.raises(hamlyn.HandleClosed):
                    await connecting
                # Nothing holds it any more.
                hamlyn.open("me").close()

    asyncio.run(main())


def test_closed_after_it_was_connected(apart: None) -> None:
    with hamlyn.open("alice") as alice:
        inbox = alice.bind_datagram("inbox")
        me = hamlyn.open()
        connecting: Any = me.connect_datagram_async("alice/inbox", WAIT)
        end(connecting)
        me.close()
        with pytest.raises(hamlyn.HandleClosed):
            connecting.made()
        assert inbox.recv(0) is None


def test_a_fork_in_between(apart: None) -> None:
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        log = alice.bind_stream("log")
        connecting: Any = me.connect_stream_async("alice/log", WAIT)
        end(connecting)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for ask in (connecting.look, connecting.wait, connecting.made):
                    try:
                        ask()
                    except hamlyn.Forked:
                        code = 0
                    else:
                        code = 1
                        break
                connecting.give_up()
                del connecting
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        # The child has closed nothing of it.
        connecting.made().send(b"hello")
        assert log.recv_bytes(WAIT) == b"hello"


def test_what_cannot_be_connected_to() -> None:
    async def main() -> None:
        with hamlyn.open("alice") as alice, hamlyn.open() as me:
            log = alice.bind_stream("log")
            for timeout in (0, 0.05):
                with pytest.raises(hamlyn.NotFound, match="bob"):
                    await me.connect_datagram_async("bob/inbox", timeout)
                with pytest.raises(hamlyn.NotFound, match="bob"):
                    await me.ask_async("bob", "ticket", timeout)
                with pytest.raises(hamlyn.NotFound, match="nothing"):
                    await alice.connect_datagram_async("alice/nothing", timeout)
            with pytest.raises(hamlyn.NotFound, match="nothing"):
                await me.connect_datagram_async("alice/nothing", 0.2)
            inbox = alice.bind_datagram("inbox")
            with pytest.raises(hamlyn.Refused, match="datagram"):
                await me.connect_service_async("alice/inbox", WAIT)
            inbox.close()
            await me.connect_stream_async("alice/log", WAIT)
            with pytest.raises(hamlyn.Taken):
                await me.connect_stream_async("alice/log", WAIT)
            for address in ("alice", "", "/", "a/b/c/d"):
                with pytest.raises(hamlyn.Invalid):
                    await me.connect_datagram_async(address, WAIT)
            with hamlyn.open() as gone:
                ticket = gone.open_datagram().ticket
            with pytest.raises(hamlyn.PeerGone):
                await me.connect_datagram_async(ticket, WAIT)
            with pytest.raises(hamlyn.PeerGone):
                await me.interface.target_async(ticket, WAIT)
            log.close()

    asyncio.run(main())


def test_what_a_peer_has_is_fetched() -> None:
    async def main() -> None:
        with hamlyn.open("alice") as alice, hamlyn.open() as me, hamlyn.open() as stranger:
            area = alice.interface.allocate(4096, "sparse")
            slot = alice.interface.open_slot(area, rights="all")
            owner = me.interface.peer_of(me.interface.target(slot.ticket(), WAIT))
            peer = alice.next_event(WAIT).peer
            assert owner is not None and peer is not None
            with alice.interface.share(slot) as region:
                with pytest.raises(hamlyn.NotFound, match="no link"):
                    await stranger.interface.attach_async(region.ticket, WAIT)
                pool = hamlyn.Pool(64, 1)
                number = alice.interface.show_pool(pool, peer)
                attached, shared = await asyncio.gather(
                    me.interface.attach_async(region.ticket, WAIT),
                    me.interface.fetch_pool_async(owner, number, WAIT, trust_peers=True),
                )
                assert me.interface.regions_attached == 1
                attached.window().write(8, b"attached")
                assert area.read(8, 8) == b"attached"
                assert len(memoryview(shared)) == len(shared)
            # Not there any more, or fetched before.
            with pytest.raises(hamlyn.NotFound):
                await me.interface.attach_async(region.ticket, WAIT)
            with pytest.raises(hamlyn.NotFound):
                await me.interface.fetch_pool_async(owner, number, WAIT)
            with pytest.raises(TypeError):
                me.interface.attach_async(slot.ticket())  # type: ignore[arg-type]
            with pytest.raises(TypeError):
                me.interface.fetch_pool_async(5, number)  # type: ignore[arg-type]

    asyncio.run(main())


def test_bad_arguments_are_told_at_the_call() -> None:
    async def main() -> None:
        with hamlyn.open() as me:
            for connect in (
                me.connect_datagram_async,
                me.connect_stream_async,
                me.connect_tagged_write_async,
                me.connect_group_async,
                me.connect_service_async,
                me.connect_subscriber_async,
                me.interface.target_async,
            ):
                with pytest.raises(TypeError):
                    connect(None)  # type: ignore[arg-type]
                with pytest.raises(TypeError):
                    connect(1.5)  # type: ignore[arg-type]
            for connect in (me.connect_datagram_async, me.connect_service_async):
                with pytest.raises(TypeError, match="seconds"):
                    connect("alice/inbox", "soon")  # type: ignore[arg-type]
                with pytest.raises(ValueError, match="seconds"):
                    connect("alice/inbox", -1)
            with pytest.raises(hamlyn.Invalid):
                me.connect_stream_async(b"no seed")
            with pytest.raises(TypeError):
                me.ask_async("alice", None)  # type: ignore[arg-type]
            me.close()
            with pytest.raises(hamlyn.HandleClosed):
                me.connect_datagram_async("alice/inbox")

    asyncio.run(main())
