"""Every operation between two processes."""

from __future__ import annotations

import asyncio
import os
import struct
import threading
from typing import Any, Callable

import pytest
from conftest import running

import hamlyn

WAIT = 60


def datagram_sender() -> None:
    with hamlyn.open() as me:
        outbox = me.connect_datagram("alice/inbox", WAIT)
        answers = me.open_datagram()
        outbox.send_to(3, b"first", answers.ticket, WAIT)
        assert bytes(answers.recv(WAIT)) == b"answer"
        # A long one, of several packets.
        outbox.send(bytes(range(256)) * 1000, WAIT)
        assert bytes(answers.recv(WAIT)) == b"more"
        outbox.send(bytearray(b"short"), WAIT)
        assert bytes(answers.recv(WAIT)) == b"more"
        outbox.send(b"x" * 100, WAIT)
        assert bytes(answers.recv(WAIT)) == b"end"


def test_datagrams() -> None:
    with hamlyn.open("alice") as alice, running(datagram_sender) as peer:
        inbox = alice.bind_datagram("inbox", 1 << 20)
        assert inbox.is_ready
        first = inbox.recv(WAIT)
        assert (bytes(first), first.offset, len(first)) == (b"first", 3, 5)
        assert not inbox.is_ready
        sender = first.sender
        assert (sender.process, sender.user, sender.node) == (peer.pid, os.getuid(), 0)
        assert str(peer.pid) in repr(sender)
        answer = alice.connect_datagram(first.reply_ticket, WAIT)
        first.release()
        answer.send(b"answer")
        second = inbox.recv(WAIT)
        assert second == bytes(range(256)) * 1000
        assert second.reply_ticket is None
        second.release()
        answer.send(b"more")
        assert inbox.recv_bytes(WAIT) == b"short"
        answer.send(b"more")
        buffer = bytearray(100)
        assert inbox.recv_into(buffer, WAIT) == 100
        assert buffer == b"x" * 100
        answer.send(b"end")
        alice.flush(WAIT)
        assert inbox.recv(0) is None


def test_a_long_datagram_that_was_not_sent_is_no_part_of_the_next() -> None:
    length = 48 << 20
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        inbox = alice.bind_datagram("inbox", length)
        outbox = me.connect_datagram("alice/inbox", WAIT)

        def beside(call: Callable[..., None], *arguments: Any) -> None:
            thread = threading.Thread(target=call, args=arguments)
            thread.start()
            while thread.is_alive():
                alice.wait(0.01)
            thread.join()

        for sent in (b"2", b"4"):
            with pytest.raises(hamlyn.TimedOut):
                outbox.send(b"1" * length, 0)
            beside(outbox.fence, WAIT)
            assert inbox.recv(0) is None
            inbox.reset()
            beside(outbox.send, sent * length, WAIT)
            assert inbox.recv_bytes(WAIT) == sent * length


def test_a_long_datagram_of_a_task_that_was_cancelled_is_no_part_of_the_next() -> None:
    length = 48 << 20

    async def main() -> None:
        with hamlyn.open("alice") as alice, hamlyn.open() as me:
            inbox = alice.bind_datagram("inbox", length)
            outbox = me.connect_datagram("alice/inbox", WAIT)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(outbox.send_async(b"1" * length), 0.01)
            fenced = asyncio.ensure_future(outbox.fence_async())
            while not fenced.done():
                alice.poll()
                await asyncio.sleep(0)
            assert inbox.recv(0) is None
            inbox.reset()
            sent = asyncio.ensure_future(outbox.send_async(b"2" * length))
            received = await inbox.recv_async()
            assert received == b"2" * length
            await sent

    asyncio.run(main())


def refused_sender() -> None:
    with hamlyn.open() as me:
        outbox = me.connect_datagram("alice/inbox", WAIT)
        outbox.send(b"one")
        outbox.fence(WAIT)
        outbox.send(b"two")
        with pytest.raises(hamlyn.Refused, match="spent") as refused:
            outbox.fence(WAIT)
        assert isinstance(refused.value, PermissionError)
        me.fence(WAIT)


def test_a_datagram_that_is_refused() -> None:
    with hamlyn.open("alice", strategy="np") as alice:
        inbox = alice.bind_datagram("inbox")
        with running(refused_sender):
            pass
        assert inbox.recv_bytes(0) == b"one"
        assert sum(inbox.refusals.values()) == 1
        assert sum(alice.refusals.values()) == 1


def stream_sender(count: int) -> None:
    with hamlyn.open() as me, me.connect_stream("alice/log", WAIT) as log:
        for number in range(count):
            log.send(struct.pack("<I", number) * (1 + number % 5000))
        log.fence(WAIT)


def test_streams() -> None:
    with hamlyn.open("alice") as alice:
        log = alice.bind_stream("log")
        with running(stream_sender, 10_000) as peer:
            for number, record in enumerate(log):
                assert record == struct.pack("<I", number) * (1 + number % 5000)
            assert number == 9_999
            with pytest.raises(hamlyn.Closed) as closed:
                log.recv(WAIT)
            assert isinstance(closed.value, EOFError)
            assert log.sender.process == peer.pid


def seeded(seed: bytes) -> None:
    with hamlyn.open() as me, me.connect_stream(seed, WAIT) as stream:
        stream.send(b"from a seed")
        stream.flush(WAIT)


def test_a_stream_from_a_seed() -> None:
    with hamlyn.open() as me:
        stream = me.open_stream()
        with running(seeded, stream.seed) as peer:
            record = stream.recv(WAIT)
            assert record.sender.process == peer.pid
            assert record.tobytes() == b"from a seed"
            assert stream.recv_bytes.__doc__
            with pytest.raises(hamlyn.Closed):
                stream.recv_bytes(WAIT)


def tag_sender() -> None:
    with hamlyn.open() as me:
        table = me.connect_tagged_write("alice/table", WAIT)
        for tag in range(100):
            table.send(8 * tag, struct.pack("<Q", tag * tag), tag)
        table.fence(WAIT)
        table.send(0, b"", 1 << 60)
        table.fence(WAIT)


def test_tagged_writes() -> None:
    with hamlyn.open("alice", strategy="np") as alice:
        table = alice.bind_tagged_write("table", 1024, 256)
        with running(tag_sender) as peer:
            assert table.get_specific_tag(1 << 60, WAIT) == 1 << 60
            first = table.recv(WAIT)
            assert first == 0 and int(first) == 0 and first.sender.process == peer.pid
            assert [table.get_tag(0) for _ in range(99)] == list(range(1, 100))
            assert table.get_tag(0) is None
            area = table.area
            assert struct.unpack("<100Q", area.read(0, 800)) == tuple(tag * tag for tag in range(100))
            assert area.load_u64(8 * 99) == 99 * 99
            assert len(area) == 1024
            assert table.lost == 0


def service_client() -> None:
    with hamlyn.open() as me:
        client = me.connect_service("alice/sums", WAIT)
        assert client.to == "alice/sums"
        assert bytes(client.call(b"\x01\x02", WAIT)) == b"\x03"
        assert client.call_bytes(b"\x01\x02\x03", WAIT) == b"\x06"
        calls = [client.start(bytes([number]), WAIT) for number in range(8)]
        assert client.outstanding_max == 8 and client.request_bytes_max == 4096
        for number in reversed(range(8)):
            assert bytes(client.reply(calls[number], WAIT)) == bytes([number])
        with pytest.raises(hamlyn.Released):
            client.reply(calls[0], WAIT)
        with pytest.raises(hamlyn.Refused, match="without an answer"):
            client.call(b"drop", WAIT)
        with pytest.raises(hamlyn.TooLong, match="at most 4096"):
            client.call(bytes(5000), WAIT)
        cancelled = client.start(b"cancel", WAIT)
        cancelled.cancel()
        assert client.call_bytes(b"\x09", WAIT) == b"\x09"
        assert client.call_bytes(b"end", WAIT) == b""


def test_services() -> None:
    with hamlyn.open("alice") as alice:
        sums = alice.bind_service("sums")
        with running(service_client) as peer:
            for _ in range(2):
                call = sums.recv(WAIT)
                assert call.client.process == peer.pid
                assert call.reply(bytes([sum(call.tobytes())])) == "sent"
            calls = [sums.recv(WAIT) for _ in range(8)]
            for call in reversed(calls):
                # Those before the last were deferred.
                assert call.client.process == peer.pid
                assert call.reply(bytes(call)) == "sent"
                with pytest.raises(hamlyn.Released):
                    call.reply(b"twice")
            call = sums.recv(WAIT)
            assert bytes(call) == b"drop"
            del call
            while True:
                call = sums.recv(WAIT)
                request = bytes(call)
                if request == b"end":
                    break
                call.reply(request)
            with pytest.raises(hamlyn.TooLong, match="at most 4096"):
                call.reply(bytes(4097))
            call.reply()
            assert sums.misbehaved == 0


def dismissed_client() -> None:
    with hamlyn.open() as me:
        client = me.connect_service("alice/sums", WAIT)
        client.call(b"", WAIT)
        with pytest.raises(hamlyn.Closed, match="dismissed"):
            client.call(b"", WAIT)


def test_a_client_is_dismissed() -> None:
    with hamlyn.open("alice") as alice:
        sums = alice.bind_service("sums")
        with running(dismissed_client):
            call = sums.recv(WAIT)
            client = call.client
            call.reply()
            call = sums.recv(WAIT)
            assert sums.dismiss(client)
            assert not sums.dismiss(client)
            alice.flush(WAIT)


def member(content: bytes) -> None:
    with hamlyn.open() as me:
        part = me.connect_group("alice/whole", WAIT)
        middle = len(content) // 2
        part.send(0, content[:middle], WAIT)
        part.send_last(middle, content[middle:], WAIT)
        part.fence(WAIT)
        with pytest.raises(hamlyn.Closed):
            part.send_last(0, b"", WAIT)


def test_groups() -> None:
    parts = [bytes([65 + number]) * 100_000 for number in range(3)]
    with hamlyn.open("alice", strategy="np") as alice:
        group = alice.bind_group("whole", 300_000)
        group.begin_shared([100_000] * 3)
        assert group.recv(0) is None
        with running(member, parts[0]), running(member, parts[1]), running(member, parts[2]):
            whole = bytes(group.recv(WAIT))
        assert sorted(whole[at : at + 100_000] for at in range(0, 300_000, 100_000)) == parts
        whole_member = group.begin()
        first, second = whole_member.divide([1000, 299_000])
        assert (len(first), len(second)) == (1000, 299_000)
        assert hamlyn.Member(bytes(first)) == first


def reader(count: int, trust: bool) -> None:
    with hamlyn.open() as me:
        frames = me.connect_subscriber("alice/frames", WAIT, trust_publisher=trust)
        assert frames.reads_in_place
        numbers = []
        for sample in frames:
            assert sample == bytes([sample.number % 251]) * (1 + sample.number * 7)
            with memoryview(sample) as view:
                assert view.readonly and view.nbytes == len(sample)
            numbers.append(sample.number)
        assert numbers == list(range(count))
        assert frames.lost == 0
        with pytest.raises(hamlyn.Closed):
            frames.recv(WAIT)


@pytest.mark.parametrize("trust", [False, True])
def test_loans(trust: bool) -> None:
    with hamlyn.open("alice") as alice:
        frames = alice.bind_publisher("frames", message_bytes=8192)
        with running(reader, 1000, trust):
            assert frames.await_readers(1, WAIT) == 1
            for number in range(1000):
                with frames.loan(1 + number * 7, WAIT) as loan:
                    memoryview(loan)[:] = bytes([number % 251]) * len(loan)
            frames.flush(WAIT)
            frames.close()


def test_a_loan_that_is_too_long() -> None:
    with hamlyn.open("alice") as alice:
        frames = alice.bind_publisher("frames", message_bytes=100)
        with pytest.raises(hamlyn.TooLong, match="at most 100"):
            frames.loan(101)
        published = frames.publish(b"to nobody")
        assert (published.number, published.readers, published.lost) == (0, 0, 0)


def arriving() -> None:
    with hamlyn.open() as me:
        me.connect_datagram("alice/inbox", WAIT).send(b"")
        me.flush(WAIT)


def test_events() -> None:
    with hamlyn.open("alice") as alice:
        inbox = alice.bind_datagram("inbox")
        with running(arriving) as peer:
            event = alice.next_event(WAIT)
            assert (event.kind, event.peer.process, event.cause) == ("peer_arrived", peer.pid, None)
            assert "arrived" in str(event)
            event = alice.next_event(WAIT)
            assert (event.kind, event.peer.process) == ("peer_left", peer.pid)
            assert event.cause
        assert alice.next_event(0) is None
        assert inbox.recv_bytes(0) == b""


def asking() -> None:
    with hamlyn.open() as me:
        assert me.ask("alice", "greeting", WAIT) == b"hello"
        ticket = hamlyn.Ticket(me.ask("alice", "ticket", WAIT))
        me.connect_datagram(ticket, WAIT).send(b"by ticket")
        me.flush(WAIT)


def test_offers_and_tickets() -> None:
    with hamlyn.open("alice") as alice:
        inbox = alice.open_datagram()
        alice.offer("greeting", b"hello")
        alice.offer("ticket", bytes(inbox.ticket), once=True)
        with running(asking):
            assert inbox.recv_bytes(WAIT) == b"by ticket"
        alice.withdraw("greeting")
        with pytest.raises(hamlyn.NotFound):
            alice.ask("alice", "greeting", 0.01)
        before = inbox.ticket
        inbox.revoke()
        assert inbox.ticket != before
        assert len(inbox.ticket) == 4096 and len(before.narrow(8, 16)) == 16
        assert "key" not in repr(before)


def waiting_peer() -> None:
    with hamlyn.open() as me:
        me.connect_datagram("alice/inbox", WAIT).send(b"woken")
        me.flush(WAIT)


def test_event_loops() -> None:
    import select

    with hamlyn.open("alice") as alice:
        inbox = alice.bind_datagram("inbox")
        with running(waiting_peer):
            while (message := inbox.recv_bytes(0)) is None:
                sleep = alice.prepare_sleep()
                if sleep is not None:
                    with sleep:
                        select.select([alice], [], [], sleep.timeout)
            assert message == b"woken"


@pytest.mark.parametrize("strategy", ["proc", "np", "inject", "receive"])
def test_strategies(strategy: str) -> None:
    with hamlyn.open("alice", strategy=strategy) as alice:
        log = alice.bind_stream("log")
        with running(stream_sender, 300):
            assert sum(1 for _ in log) == 300


def test_waiting_for_anything() -> None:
    with hamlyn.open("alice") as alice:
        inbox, other = alice.bind_datagram("inbox"), alice.bind_datagram("other")
        with running(waiting_peer):
            while (message := inbox.recv_bytes(0)) is None:
                assert other.recv(0) is None
                alice.wait(WAIT)
            assert message == b"woken"
        alice.wait(0.001)
        alice.wait(0)
