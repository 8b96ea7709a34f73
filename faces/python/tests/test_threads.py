"""Threads that use one manager at a time, against the rule: each call is carried out whole or refused with InUse, and nothing is lost or
read twice; objects are freed in whatever thread."""

from __future__ import annotations

import queue
import threading

import hamlyn

WAIT = 60
ROUNDS = 3000


def test_threads_that_do_not_keep_to_the_rule() -> None:
    with hamlyn.open("alice") as alice:
        log = alice.bind_stream("log")
        sender = alice.connect_stream("alice/log", WAIT)
        received: list[int] = []
        refused = [0]
        dropped: queue.Queue[object] = queue.Queue()

        def again(call, *arguments):
            while True:
                try:
                    return call(*arguments)
                except hamlyn.InUse:
                    refused[0] += 1

        def send() -> None:
            for number in range(ROUNDS):
                again(sender.send, b"%d" % number)
            again(sender.flush)
            again(sender.close)

        def receive() -> None:
            while True:
                try:
                    record = log.recv(0.001)
                except hamlyn.InUse:
                    refused[0] += 1
                    continue
                except hamlyn.Closed:
                    return
                if record is not None:
                    view = memoryview(record)
                    received.append(int(bytes(view)))
                    dropped.put(view)

        def free() -> None:
            while dropped.get() is not None:
                pass

        def poll() -> None:
            while not done.is_set():
                again(alice.poll)
                again(alice.next_event, 0)

        done = threading.Event()
        working = [threading.Thread(target=target) for target in (send, receive)]
        others = [threading.Thread(target=target) for target in (free, poll)]
        for thread in working + others:
            thread.start()
        for thread in working:
            thread.join()
        done.set()
        dropped.put(None)
        for thread in others:
            thread.join()
        assert received == list(range(ROUNDS))


def test_a_manager_for_each_thread() -> None:
    def serve() -> None:
        with hamlyn.open("server") as server:
            service = server.bind_service("echo")
            for _ in range(4 * 200):
                call = service.recv(WAIT)
                call.reply(call)
            server.flush(WAIT)
            stop.wait()

    def ask(number: int) -> None:
        with hamlyn.open() as me:
            echo = me.connect_service("server/echo", WAIT)
            for turn in range(200):
                text = b"%d %d" % (number, turn)
                assert echo.call_bytes(text, WAIT) == text
        right.append(number)

    stop = threading.Event()
    right: list[int] = []
    server = threading.Thread(target=serve)
    clients = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in [server, *clients]:
        thread.start()
    for thread in clients:
        thread.join()
    stop.set()
    server.join()
    assert sorted(right) == [0, 1, 2, 3]
