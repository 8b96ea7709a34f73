"""Views of messages: they hold what they show, and what they show does not change."""

from __future__ import annotations

import gc
import threading

import numpy
import pytest

import hamlyn

WAIT = 60


@pytest.fixture
def pair():
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        yield alice, me


def test_a_view_holds_a_datagram(pair) -> None:
    alice, me = pair
    inbox = alice.bind_datagram("inbox")
    outbox = me.connect_datagram("alice/inbox", WAIT)
    outbox.send(b"first")
    datagram = inbox.recv(WAIT)
    view = memoryview(datagram)
    assert view.readonly and view.format == "B" and view.nbytes == 5
    with pytest.raises(TypeError):
        view[0] = 1
    with pytest.raises(BufferError, match="view of the datagram is alive"):
        datagram.release()
    with pytest.raises(BufferError):
        inbox.recv(0)
    with pytest.raises(BufferError):
        inbox.recv_bytes(0)
    # A message that is deleted is held by its view.
    del datagram
    gc.collect()
    outbox.send(b"later")
    alice.poll()
    assert view == b"first"
    assert not inbox.is_ready
    view.release()
    # Its view was the last that held it.
    assert inbox.is_ready
    outbox.send(b"second")
    assert inbox.recv_bytes(WAIT) == b"second"


def test_a_released_message_is_an_error(pair) -> None:
    alice, me = pair
    inbox = alice.bind_datagram("inbox")
    outbox = me.connect_datagram("alice/inbox", WAIT)
    outbox.send(b"first")
    with inbox.recv(WAIT) as datagram:
        assert datagram.tobytes() == b"first"
        assert not datagram.released
    assert datagram.released
    for use in (bytes, memoryview, lambda it: it.tobytes(), lambda it: it.read_into(bytearray(5)), lambda it: it.sender):
        with pytest.raises(hamlyn.Released, match="was released"):
            use(datagram)
    datagram.release()
    assert len(datagram) == 5
    assert "released" in repr(datagram)
    # The next receive releases the one before, too.
    outbox.send(b"second")
    second = inbox.recv(WAIT)
    assert inbox.recv(0) is None
    with pytest.raises(hamlyn.Released):
        bytes(second)


def test_records_with_views_are_kept(pair) -> None:
    alice, me = pair
    log = alice.bind_stream("log")
    sender = me.connect_stream("alice/log", WAIT)
    for number in range(20):
        sender.send(numpy.full(100, number, "u2"))
    sender.flush(WAIT)
    arrays = [numpy.frombuffer(log.recv(WAIT), "u2") for _ in range(20)]
    for number in range(20, 40):
        sender.send(numpy.full(100, number, "u2"))
        sender.flush(WAIT)
        assert log.recv_bytes(WAIT) == numpy.full(100, number, "u2").tobytes()
    for number, array in enumerate(arrays):
        assert not array.flags.writeable
        assert (array == number).all()
    del arrays, array
    gc.collect()
    log.reclaim()


def test_kept_records(pair) -> None:
    alice, me = pair
    log = alice.bind_stream("log")
    sender = me.connect_stream("alice/log", WAIT)
    for number in range(10):
        sender.send(b"%d" % number)
    records = []
    for _ in range(10):
        record = log.recv(WAIT)
        record.keep()
        record.keep()
        records.append(record)
    assert [bytes(record) for record in records] == [b"%d" % number for number in range(10)]
    view = memoryview(records[3])
    with pytest.raises(BufferError):
        records[3].release()
    view.release()
    for record in reversed(records):
        record.release()
        with pytest.raises(hamlyn.Released):
            record.keep()


def test_kept_memory_goes_back(pair) -> None:
    """A stream of a fixed size blocks while its records are kept, and goes on when they are not."""
    alice, me = pair
    log = alice.bind_stream("log", pieces=4, piece_bytes=64, limit_bytes=256)
    sender = me.connect_stream("alice/log", WAIT)
    for _ in range(4):
        sender.send(bytes(64))
    kept = [memoryview(log.recv(WAIT)) for _ in range(4)]
    with pytest.raises(hamlyn.TimedOut):
        for _ in range(10):
            sender.send(bytes(64), 0.01)
    for view in kept:
        view.release()
    received = 0
    for _ in range(20):
        while log.recv(0) is not None:
            received += 1
        try:
            sender.send(bytes(64), 0)
        except hamlyn.TimedOut:
            pass
    assert received >= 4


def test_views_outlive_their_end_point(pair) -> None:
    alice, me = pair
    log = alice.bind_stream("log")
    inbox = alice.bind_datagram("inbox")
    sender = me.connect_stream("alice/log", WAIT)
    outbox = me.connect_datagram("alice/inbox", WAIT)
    sender.send(b"record" * 1000)
    outbox.send(b"datagram")
    record, datagram = memoryview(log.recv(WAIT)), memoryview(inbox.recv(WAIT))
    log.close()
    alice.close()
    assert alice.closed and inbox.closed
    with pytest.raises(hamlyn.HandleClosed, match="was closed"):
        inbox.recv(0)
    with pytest.raises(hamlyn.HandleClosed):
        log.recv(0)
    gc.collect()
    assert record == b"record" * 1000 and datagram == b"datagram"
    del log, inbox, alice
    gc.collect()
    assert record == b"record" * 1000 and datagram == b"datagram"
    record.release()
    datagram.release()


def test_a_name_is_free_when_its_manager_is_closed() -> None:
    for _ in range(3):
        with hamlyn.open("alice") as alice:
            inbox = alice.bind_datagram("inbox")
            with pytest.raises(hamlyn.Taken):
                hamlyn.open("alice")
            with pytest.raises(hamlyn.Taken):
                alice.bind_datagram("inbox")
            inbox.close()
            alice.bind_datagram("inbox")


def test_replies(pair) -> None:
    alice, me = pair
    service = alice.bind_service("echo")
    client = me.connect_service("alice/echo", WAIT)
    first = client.start(b"first", WAIT)
    second = client.start(b"second", WAIT)
    call = service.recv(WAIT)
    view = memoryview(call)
    for refused in (lambda: call.reply(b"x"), lambda: service.recv(0)):
        with pytest.raises(BufferError, match="view of the call"):
            refused()
    assert view == b"first"
    view.release()
    other = service.recv(WAIT)
    # The first was deferred: its views are views of a copy.
    view = memoryview(call)
    assert view == b"first" and bytes(other) == b"second"
    assert call.reply(call) == "sent"
    assert view == b"first"
    assert other.reply(other) == "sent"
    reply = client.reply(first, WAIT)
    held = memoryview(reply)
    # It is kept by itself.
    assert bytes(client.reply(second, WAIT)) == b"second"
    assert held == b"first"
    with pytest.raises(BufferError, match="view of the reply"):
        reply.release()
    held.release()
    reply.release()
    with pytest.raises(hamlyn.Released):
        bytes(reply)


def test_kept_replies(pair) -> None:
    alice, me = pair
    service = alice.bind_service("echo", outstanding=3)
    client = me.connect_service("alice/echo", WAIT)

    def ask(text: bytes) -> hamlyn.Reply:
        pending = client.start(text, WAIT)
        call = service.recv(WAIT)
        call.reply(call)
        return client.reply(pending, WAIT)

    kept = [ask(b"first"), ask(b"second")]
    with pytest.raises(hamlyn.Released):
        bytes(kept[0])
    kept = [ask(b"first")]
    kept[0].keep()
    kept[0].keep()
    kept.append(ask(b"second"))
    views = [memoryview(kept[1])]
    for turn in range(50):
        assert ask(b"%d" % turn) == b"%d" % turn
    assert kept[0] == b"first" and views[0] == b"second"
    third = ask(b"third")
    third.keep()
    # Waiting would not help.
    for refused in (lambda: client.call(b"x"), lambda: client.start(b"x"), lambda: client.call_bytes(b"x")):
        with pytest.raises(BufferError, match="drop one"):
            refused()
    third.release()
    assert ask(b"again") == b"again"
    client.close()
    # Its memory stays as long as a view.
    assert views[0] == b"second"
    with pytest.raises(hamlyn.Released):
        bytes(kept[0])


def test_loans(pair) -> None:
    alice, me = pair
    frames = alice.bind_publisher("frames", message_bytes=4096, chunks=16, depth=8)
    reader = me.connect_subscriber("alice/frames", WAIT, trust_publisher=True)
    assert reader.recv(0) is None
    assert frames.await_readers(1, WAIT) == 1
    loan = frames.loan(400)
    array = numpy.frombuffer(loan, "f4")
    array[:] = numpy.arange(100)
    with pytest.raises(BufferError, match="view of the loan"):
        loan.publish()
    with pytest.raises(BufferError):
        loan.release()
    del array
    loan.publish()
    for use in (memoryview, lambda it: it.publish()):
        with pytest.raises(hamlyn.Released):
            use(loan)
    sample = reader.recv(WAIT)
    values = numpy.frombuffer(sample, "f4")
    assert (values == numpy.arange(100)).all() and not values.flags.writeable
    # Kept by its view: the publisher writes elsewhere.
    for number in range(7):
        with frames.loan(400, WAIT) as loan:
            memoryview(loan).cast("f")[:] = memoryview(numpy.full(100, number, "f4"))
        assert numpy.frombuffer(reader.recv(WAIT), "f4")[0] == number
        assert (values == numpy.arange(100)).all()
    del values, sample
    # Given back with the reader's next call.
    assert reader.recv(0) is None
    # A loan that is deleted is not published.
    loan = frames.loan(10)
    del loan
    assert reader.recv(0) is None
    with pytest.raises(ZeroDivisionError):
        with frames.loan(10):
            raise ZeroDivisionError
    assert reader.recv(0) is None


def test_a_publisher_that_is_not_trusted(pair) -> None:
    """Views are views of a copy: the publisher cannot change what they show."""
    alice, me = pair
    frames = alice.bind_publisher("frames", message_bytes=100, chunks=1, depth=1)
    reader = me.connect_subscriber("alice/frames", WAIT)
    assert reader.recv(0) is None
    frames.await_readers(1, WAIT)
    frames.publish(b"a" * 100)
    sample = reader.recv(WAIT)
    view = memoryview(sample)
    # The copy has set the publisher's only message free.
    frames.publish(b"b" * 100, WAIT)
    assert view == b"a" * 100
    second = reader.recv(WAIT)
    assert second.tobytes() == b"b" * 100
    buffer = bytearray(10)
    assert second.read_into(buffer, 95) == 5 and buffer[:5] == b"bbbbb"
    assert sample.tobytes() == b"a" * 100


def test_reading_into_buffers(pair) -> None:
    alice, me = pair
    log = alice.bind_stream("log")
    sender = me.connect_stream("alice/log", WAIT)
    sender.send(b"0123456789")
    buffer = bytearray(4)
    with pytest.raises(hamlyn.TooLong, match="10 bytes came, and the buffer has 4"):
        log.recv_into(buffer, WAIT)
    # It was not lost.
    assert bytes(log.recv(WAIT)) == b"0123456789"
    sender.send(b"abc")
    array = numpy.zeros(5, "u1")
    assert log.recv_into(array, WAIT) == 3
    assert array.tobytes() == b"abc\0\0"
    with pytest.raises(BufferError):
        log.recv_into(b"read-only", 0)
    sender.send(b"0123456789")
    record = log.recv(WAIT)
    assert record.read_into(buffer, 8) == 2 and buffer == b"89\0\0"
    assert record.read_into(buffer, 100) == 0


def test_empty_messages(pair) -> None:
    alice, me = pair
    inbox = alice.bind_datagram("inbox")
    outbox = me.connect_datagram("alice/inbox", WAIT)
    outbox.send(b"")
    datagram = inbox.recv(WAIT)
    assert bytes(datagram) == b"" and memoryview(datagram).nbytes == 0 and not datagram
    assert numpy.frombuffer(memoryview(datagram).tobytes(), "u1").size == 0


def test_views_are_freed_in_other_threads(pair) -> None:
    alice, me = pair
    log = alice.bind_stream("log")
    sender = me.connect_stream("alice/log", WAIT)
    sender.send(b"record")
    views = [memoryview(log.recv(WAIT))]

    def free() -> None:
        # While the other thread waits in a call of this stream.
        waiting.wait()
        views.clear()
        sender_thread.start()

    def send() -> None:
        with hamlyn.open() as other:
            other.connect_datagram("alice/wake", WAIT).send(b"")
            other.flush(WAIT)

    waiting = threading.Event()
    sender_thread = threading.Thread(target=send)
    freeing = threading.Thread(target=free)
    wake = alice.bind_datagram("wake")
    freeing.start()
    waiting.set()
    assert wake.recv_bytes(WAIT) == b""
    freeing.join()
    sender_thread.join()
    sender.send(b"next")
    assert log.recv_bytes(WAIT) == b"next"
