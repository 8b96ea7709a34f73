"""What is wrong is told, with what is wanted; nothing is lost by it."""

from __future__ import annotations

import math
import threading

import numpy
import pytest

import hamlyn

WAIT = 60


@pytest.fixture
def alice():
    with hamlyn.open("alice") as alice:
        yield alice


def test_types_are_named(alice) -> None:
    inbox = alice.bind_datagram("inbox")
    outbox = alice.connect_datagram("alice/inbox", WAIT)
    for wrong, said in [
        ("text", "not str: encode it first"),
        (5, "not int"),
        (None, "not NoneType"),
        ([1], "not list"),
        (numpy.zeros((4, 4))[:, 1], "ascontiguousarray"),
    ]:
        with pytest.raises((TypeError, BufferError), match=said):
            outbox.send(wrong)
    for wrong in ("5", b"5", object()):
        with pytest.raises(TypeError, match="number of seconds"):
            inbox.recv(wrong)
    for wrong in (-1, -0.1, math.nan):
        with pytest.raises(ValueError, match="0 seconds or more"):
            inbox.recv(wrong)
    with pytest.raises(TypeError, match="not bool"):
        inbox.recv(True)
    assert inbox.recv(numpy.float64(0)) is None
    with pytest.raises(TypeError, match="Ticket"):
        alice.connect_datagram(5)
    with pytest.raises(TypeError, match="Member"):
        alice.connect_group(5)
    with pytest.raises(TypeError, match="not int"):
        alice.connect_stream(5)
    with pytest.raises(TypeError):
        inbox.recv(1, 2)
    with pytest.raises(TypeError):
        hamlyn.DatagramReceiver()
    with pytest.raises(BufferError, match="read-only"):
        inbox.recv_into(b"bytes")
    with pytest.raises(TypeError, match="bytearray"):
        inbox.recv_into(5)


def test_settings(alice) -> None:
    for wrong in (
        lambda: alice.bind_datagram("inbox", 0),
        lambda: alice.bind_datagram("in/box"),
        lambda: alice.bind_stream("log", pieces=0),
        lambda: alice.bind_stream("log", piece_bytes=100),
        lambda: alice.bind_service("sums", request_bytes=0),
        lambda: alice.bind_publisher("frames", depth=0),
        lambda: hamlyn.open("bad name"),
        lambda: hamlyn.open(cells=3),
        lambda: hamlyn.open(queue_entries=0),
    ):
        with pytest.raises(hamlyn.Invalid) as invalid:
            wrong()
        assert isinstance(invalid.value, ValueError)
    for wrong in (-1, 1 << 40):
        with pytest.raises(hamlyn.Invalid, match=f"buffer_bytes is an int from 0 to 4294967295, not {wrong}"):
            alice.bind_datagram("inbox", wrong)
    for wrong, said in [
        (lambda: hamlyn.open(strategy="fast"), "strategy"),
        (lambda: alice.bind_publisher("frames", slow_readers="wait"), "slow_readers"),
        (lambda: alice.bind_group("whole", 8, 16), "32 or 64"),
        (lambda: hamlyn.open(anyone=True, users=[1]), "anyone"),
        (lambda: hamlyn.Network(), "secret"),
        (lambda: hamlyn.Network(insecure=True, listen="nowhere"), "listen"),
        (lambda: hamlyn.Network(insecure=True, hosts={"other": "nowhere"}), "address"),
        (lambda: hamlyn.open(handshake_timeout=-1), "handshake_timeout"),
    ]:
        with pytest.raises(ValueError, match=said):
            wrong()
    with pytest.raises(TypeError, match="hamlyn.Network"):
        hamlyn.open(network="10.0.0.1")
    with pytest.raises(TypeError, match="hosts"):
        hamlyn.Network(insecure=True, hosts=5)
    with pytest.raises(hamlyn.SystemFailed):
        hamlyn.open(network=hamlyn.Network(secret="/no/such/file"))
    with hamlyn.open(network=False, users=[0], groups=[1], links_max=16, spin_ns=0, handshake_timeout=0.5) as opened:
        assert opened.name is None


def test_addresses(alice) -> None:
    inbox = alice.bind_datagram("inbox")
    with pytest.raises(hamlyn.NotFound, match="nobody answers") as absent:
        alice.connect_datagram("bob/inbox", 0.01)
    assert isinstance(absent.value, LookupError)
    with pytest.raises(hamlyn.NotFound, match="offers nothing"):
        alice.connect_datagram("alice/outbox", 0.01)
    with pytest.raises(hamlyn.Invalid, match="no address"):
        alice.connect_datagram("alice", 1)
    with pytest.raises(hamlyn.Refused, match="is a datagram, not a stream"):
        alice.connect_stream("alice/inbox", WAIT)
    alice.bind_stream("log")
    log = alice.bind_stream("log2")
    alice.connect_stream("alice/log2", WAIT)
    with pytest.raises(hamlyn.Taken, match="one sender"):
        alice.connect_stream("alice/log2", WAIT)
    for wrong in (hamlyn.Ticket, hamlyn.Member, alice.connect_stream):
        with pytest.raises(hamlyn.Invalid):
            wrong(b"nonsense")
        with pytest.raises(hamlyn.Invalid):
            wrong(bytes(52))
    del inbox, log


def test_time() -> None:
    with hamlyn.open("alice") as alice:
        inbox = alice.bind_datagram("inbox")
        assert inbox.recv(0) is None and inbox.recv(0.001) is None and inbox.recv_bytes(0.06) is None
        service = alice.bind_service("sums")
        client = alice.connect_service("alice/sums", WAIT)
        with pytest.raises(hamlyn.TimedOut, match="did not answer") as late:
            client.call(b"", 0.01)
        assert isinstance(late.value, TimeoutError)
        calls = [client.start(b"", 0.01) for _ in range(7)]
        with pytest.raises(hamlyn.TimedOut, match="8 may be outstanding: take a reply.*was not sent"):
            client.start(b"", 0.01)
            client.start(b"", 0.01)
        with pytest.raises(hamlyn.TimedOut, match="8 may be outstanding"):
            client.call(b"", 0.01)
        assert client.reply(calls[0], 0) is None
        del service


def test_a_publisher_that_has_ended_is_none_of_a_stream(alice) -> None:
    frames = alice.bind_publisher("frames")
    with hamlyn.open() as me:
        reader = me.connect_subscriber("alice/frames", WAIT)
        assert reader.recv(0) is None
        frames.await_readers(1, WAIT)
        frames.close()
        alice.flush(WAIT)
        with pytest.raises(hamlyn.Closed, match="the publisher has ended"):
            while reader.recv(WAIT) is None:
                pass


def test_errors_are_a_family() -> None:
    for name in hamlyn.errors.__dict__:
        kind = getattr(hamlyn.errors, name)
        if isinstance(kind, type) and kind is not hamlyn.Error:
            assert issubclass(kind, hamlyn.Error)
            assert getattr(hamlyn, name) is kind and kind.__doc__
            assert str(kind("text")) == "text"


def test_another_thread_is_told() -> None:
    with hamlyn.open("alice") as alice:
        inbox = alice.bind_datagram("inbox")
        other = alice.bind_datagram("other")
        found = []

        def receive() -> None:
            found.append(inbox.recv_bytes())

        thread = threading.Thread(target=receive)
        thread.start()
        with hamlyn.open() as me:
            outbox = me.connect_datagram("alice/inbox", WAIT)
            while True:
                try:
                    other.recv(0)
                except hamlyn.InUse as error:
                    assert "open a manager for each thread" in str(error)
                    break
            outbox.send(b"end")
            me.flush(WAIT)
            thread.join()
        assert found == [b"end"]
        # Another thread may use them when nobody else does.
        results = []
        thread = threading.Thread(target=lambda: results.append(other.recv(0)))
        thread.start()
        thread.join()
        assert results == [None]


def test_a_group_that_cannot_be_divided(alice) -> None:
    group = alice.bind_group("whole", 8)
    with pytest.raises(hamlyn.Invalid):
        group.recv(0)
    with pytest.raises(hamlyn.Invalid):
        group.begin_shared([5, 5])
    with pytest.raises(hamlyn.Invalid, match="lengths is an int from 0"):
        group.begin_shared([-1])
    group.begin_shared([8])
    part = alice.connect_group("alice/whole", WAIT)
    with pytest.raises(hamlyn.TooLong):
        part.send_last(4, b"12345")
    part.send_last(0, b"12345678")
    assert bytes(group.recv(WAIT)) == b"12345678"
