"""Forked children: what they inherit is refused, closed in silence, and keeps no name; they open their own."""

import multiprocessing
import os
import signal
import time
import traceback
from typing import Callable

import pytest

import hamlyn

WAIT = 20.0


def in_child(act: Callable[[], None]) -> None:
    """Runs it in a forked child, which then ends without a word."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        status = 1
        try:
            act()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def refused(use: Callable[[], object]) -> None:
    with pytest.raises(hamlyn.Forked):
        use()


@pytest.mark.parametrize("strategy", ["proc", "np", "inject", "receive"])
@pytest.mark.parametrize("shared", [False, True])
def test_a_child_changes_nothing(strategy: str, shared: bool) -> None:
    with hamlyn.open("there", strategy=strategy, shared=shared) as there, hamlyn.open(
        strategy=strategy, shared=shared
    ) as here:
        log = there.bind_stream("log")
        service = there.bind_service("service")
        frames = there.bind_publisher("frames")
        sender = here.connect_stream("there/log", WAIT)
        client = here.connect_service("there/service", WAIT)
        reader = here.connect_subscriber("there/frames", WAIT)
        while not frames.readers:
            frames.poll()
            here.poll()

        def exchange(text: bytes) -> None:
            sender.send(text, WAIT)
            sender.flush(WAIT)
            assert log.recv_bytes(WAIT) == text
            call = client.start(text, WAIT)
            asked = service.recv(WAIT)
            assert bytes(asked) == text
            asked.reply(text)
            assert bytes(client.reply(call, WAIT)) == text
            frames.publish(text, WAIT)
            assert bytes(reader.recv(WAIT)) == text

        def act() -> None:
            refused(lambda: sender.send(b"child", 0))
            refused(lambda: sender.flush(0))
            refused(lambda: sender.fence(0))
            refused(lambda: log.recv(0))
            refused(lambda: client.call(b"child", 0))
            refused(lambda: service.recv(0))
            refused(lambda: frames.publish(b"child", 0))
            refused(lambda: reader.recv(0))
            refused(lambda: here.poll())
            refused(lambda: here.next_event(0))
            refused(lambda: there.bind_stream("other"))
            refused(lambda: here.connect_stream("there/log", 0.01))
            # It would flush first, and may not.
            refused(sender.close)
            for end in (client, reader, log, service, frames, here, there):
                end.close()

        exchange(b"first")
        in_child(act)
        exchange(b"second")


def _worker(pipe: "multiprocessing.connection.Connection", inherited: "hamlyn.Manager") -> None:
    try:
        inherited.poll()
        pipe.send("used its parent's")
    except hamlyn.Forked:
        with hamlyn.open() as own:
            log = own.connect_stream("pool/log", WAIT)
            log.send(b"worker")
            log.close()
        pipe.send("done")


def test_workers_of_multiprocessing() -> None:
    context = multiprocessing.get_context("fork")
    with hamlyn.open("pool") as pool:
        log = pool.bind_stream("log")
        ours, theirs = context.Pipe()
        worker = context.Process(target=_worker, args=(theirs, pool))
        worker.start()
        assert log.recv_bytes(WAIT) == b"worker"
        assert ours.poll(WAIT) and ours.recv() == "done"
        worker.join(WAIT)
        assert worker.exitcode == 0
        pool.poll()


def _reopened(name: str) -> None:
    """The child may not have run yet when its parent closes."""
    until = time.monotonic() + WAIT
    while True:
        try:
            hamlyn.open(name).close()
            return
        except hamlyn.Taken:
            assert time.monotonic() < until, "the name is taken"


def test_a_name_is_free_though_a_child_lives_on() -> None:
    server = hamlyn.open("forked-name")
    waits, ends = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ends)
        os.read(waits, 1)
        os._exit(0)
    server.close()
    _reopened("forked-name")
    os.close(ends)
    os.close(waits)
    assert os.waitpid(child, 0)[1] == 0


def test_a_name_is_free_though_its_owner_was_killed() -> None:
    waits, ends = os.pipe()
    told, tells = os.pipe()
    owner = os.fork()
    if owner == 0:
        os.close(ends)
        server = hamlyn.open("forked-name")
        if os.fork() == 0:
            os.write(tells, b"x")
            os.read(waits, 1)
            os._exit(0)
        os.read(waits, 1)
        server.close()
        os._exit(0)
    assert os.read(told, 1) == b"x"
    os.kill(owner, signal.SIGKILL)
    os.waitpid(owner, 0)
    _reopened("forked-name")
    for descriptor in (waits, ends, told, tells):
        os.close(descriptor)
