"""A peer that is killed, a fork in between, a signal during a wait."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import doomed

import hamlyn

WAIT = 60


def stuck_everywhere() -> None:
    me = hamlyn.open("bob")
    ends = [
        me.bind_datagram("inbox"),
        me.bind_service("sums"),
        me.connect_stream("alice/log", WAIT),
        me.connect_subscriber("alice/frames", WAIT),
    ]
    ends[3].recv(0)
    me.connect_datagram("alice/ready", WAIT).send(b"")
    while True:
        me.poll()
        time.sleep(0.001)


def test_a_peer_is_killed() -> None:
    with hamlyn.open("alice") as alice:
        ready, log = alice.bind_datagram("ready"), alice.bind_stream("log")
        frames = alice.bind_publisher("frames", message_bytes=64, chunks=2, depth=1)
        with doomed(stuck_everywhere) as bob:
            outbox = alice.connect_datagram("bob/inbox", WAIT)
            sums = alice.connect_service("bob/sums", WAIT)
            call = sums.start(b"", WAIT)
            # The publisher must look after its readers meanwhile.
            while ready.recv_bytes(0.01) is None:
                frames.poll()
            assert frames.await_readers(1, WAIT) == 1
            os.kill(bob.pid, signal.SIGKILL)
            with pytest.raises(hamlyn.PeerGone) as gone:
                log.recv(WAIT)
            assert isinstance(gone.value, ConnectionError)
            with pytest.raises(hamlyn.PeerGone, match="is gone"):
                sums.reply(call, WAIT)
            with pytest.raises(hamlyn.PeerGone):
                sums.call(b"", WAIT)
            with pytest.raises(hamlyn.PeerGone):
                while True:
                    outbox.send(b"", WAIT)
                    outbox.fence(WAIT)
            # What the reader had is free again.
            for _ in range(10):
                frames.publish(b"x", WAIT)
            assert frames.readers == 0
            kinds = [event.kind for event in iter(lambda: alice.next_event(0), None)]
            assert kinds.count("peer_arrived") == 1 and kinds.count("peer_left") == 1
            with pytest.raises((hamlyn.NotFound, hamlyn.PeerGone)):
                alice.connect_datagram("bob/inbox", 0.01)


def test_a_fork_in_between() -> None:
    with hamlyn.open("alice") as alice:
        inbox = alice.bind_datagram("inbox")
        log = alice.bind_stream("log")
        outbox = alice.connect_datagram("alice/inbox", WAIT)
        sender = alice.connect_stream("alice/log", WAIT)
        outbox.send(b"before")
        sender.send(b"record")
        datagram = inbox.recv(WAIT)
        record = log.recv(WAIT)
        view = memoryview(record)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for use in (
                    lambda: inbox.recv(0),
                    lambda: outbox.send(b"from the child"),
                    lambda: outbox.fence(1),
                    lambda: bytes(datagram),
                    lambda: alice.poll(),
                    lambda: alice.bind_datagram("other"),
                    lambda: sender.close(),
                    lambda: datagram.release(),
                    lambda: record.keep(),
                ):
                    with pytest.raises(hamlyn.Forked, match="open another manager in the child"):
                        use()
                # What is freed here is not closed: it is the parent's.
                view.release()
                del view, datagram, record, outbox, sender
                inbox.close()
                alice.close()
                # A manager of its own works.
                with hamlyn.open("bob") as bob:
                    mine = bob.bind_datagram("inbox")
                    bob.connect_datagram("bob/inbox", WAIT).send(b"x")
                    assert mine.recv_bytes(WAIT) == b"x"
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert bytes(datagram) == b"before" and view == b"record"
        datagram.release()
        outbox.send(b"after")
        assert inbox.recv_bytes(WAIT) == b"after"


WAITS = {
    "recv": "alice.bind_datagram('inbox').recv()",
    "iterate": "next(iter(alice.bind_stream('log')))",
    "connect": "alice.connect_datagram('bob/inbox')",
    "call": "service = alice.bind_service('sums'); alice.connect_service('alice/sums').call(b'')",
    "send": "log = alice.bind_stream('log', pieces=1, limit_bytes=1<<14); sender = alice.connect_stream('alice/log')\n"
    "while True: sender.send(bytes(1<<14))",
    "long datagram": "inbox = other.bind_datagram('inbox', 1 << 26); alice.connect_datagram('bob/inbox').send(bytes(1 << 26))",
    "event": "alice.next_event()",
    "loan": "frames = alice.bind_publisher('frames', chunks=1, depth=1); reader = other.connect_subscriber('alice/frames', 60)\n"
    "reader.recv(0); frames.await_readers(1); frames.publish(b'x')\nframes.publish(b'y'); frames.publish(b'z')",
    "readers": "alice.bind_publisher('frames').await_readers(1)",
    "fence": "inbox = other.bind_datagram('inbox'); outbox = alice.connect_datagram('bob/inbox'); outbox.send(b''); outbox.fence()",
    "channel": "hamlyn.Channel.bind('numbers').recv()",
    "asyncio": "import asyncio; inbox = alice.bind_datagram('inbox')\nasync def wait(): await inbox.recv_async()\nasyncio.run(wait())",
}


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_a_wait(wait: str) -> None:
    program = textwrap.dedent(
        """
        import hamlyn, signal, threading, os, time
        signal.signal(signal.SIGINT, signal.default_int_handler)
        alice = hamlyn.open("alice")
        other = hamlyn.open("bob") if {needs_bob} else None
        try:
            print("ready", flush=True)
            {wait}
        except KeyboardInterrupt:
            # The manager works as before.
            inbox = alice.bind_datagram("after")
            alice.connect_datagram("alice/after", 60).send(b"works")
            assert inbox.recv_bytes(60) == b"works"
            print("interrupted", flush=True)
        """
    ).format(wait=WAITS[wait].replace(chr(10), chr(10) + ' ' * 4), needs_bob="bob/" in WAITS[wait] and wait != "connect" or "other" in WAITS[wait])
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        # Sooner or later it waits; a signal that comes before is as good.
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_signal_that_is_handled_does_not_end_a_wait() -> None:
    handled = []
    with hamlyn.open("alice") as alice:
        inbox = alice.bind_datagram("inbox")
        outbox = alice.connect_datagram("alice/inbox", WAIT)

        def handle(*_: object) -> None:
            # The handler may use the manager that waits.
            handled.append(alice.poll())
            outbox.send(b"from the handler")

        before = signal.signal(signal.SIGALRM, handle)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            assert inbox.recv_bytes(WAIT) == b"from the handler"
            assert len(handled) == 1
        finally:
            signal.signal(signal.SIGALRM, before)
