"""Python's multiprocessing: Pipe (bytes by send_bytes and recv_bytes) and Queue (bytes, pickled).

Started as `exchange.py VARIANT DIRECTORY - SENDERS RECEIVER_CORE SENDER_CORE`; it starts the receiver and the
senders itself, since only processes of one family can share these. The protocol is in lab/compare/README.md.
"""

import json
import multiprocessing
import multiprocessing.connection
import os
import struct
import sys
import time

RECEIVER = 0
REGION_BYTES = 128 << 20
QUEUED_MAX = 64
WORD = struct.Struct("<Q")


class Pipes:
    """One pipe for each sender; the receiver waits on all when there are several."""

    def __init__(self, senders):
        self.ends = [multiprocessing.Pipe() for _ in range(senders)]

    def become(self, role):
        self.role = role
        self.mine = [pair[0] for pair in self.ends] if role == RECEIVER else [self.ends[role - 1][1]]
        self.ready = []

    def send(self, data):
        self.mine[0].send_bytes(data)

    def receive(self, senders):
        if senders == 1:
            return self.mine[0].recv_bytes()
        if not self.ready:
            self.ready = multiprocessing.connection.wait(self.mine[:senders])
        return self.ready.pop().recv_bytes()


class Queues:
    """One queue to the receiver, and one back."""

    def __init__(self, senders):
        self.there = multiprocessing.Queue(QUEUED_MAX)
        self.back = multiprocessing.Queue(QUEUED_MAX)

    def become(self, role):
        self.out, self.into = (self.back, self.there) if role == RECEIVER else (self.there, self.back)

    def send(self, data):
        # A queue's thread reads what it was given later, so it gets a copy.
        self.out.put(bytes(data))

    def receive(self, senders):
        return self.into.get()


def stamp(sender, turn):
    return WORD.pack(sender << 48 | turn)


def is_stamped(data, size, expected):
    return len(data) == size and data[:8] == expected and data[-8:] == expected


class Worker:
    def __init__(self, exchange, directory, role):
        exchange.become(role)
        self.exchange, self.role = exchange, role
        self.answers = open(os.path.join(directory, f"answers.{role}"), "w")
        self.orders = open(os.path.join(directory, f"orders.{role}"))
        self.memory = bytearray()

    def say(self, **answer):
        self.answers.write(json.dumps(answer) + "\n")
        self.answers.flush()

    def run(self):
        self.say(open=True)
        for line in self.orders:
            words = line.split()
            if len(words) != 5:
                return
            size, count, senders = map(int, words[1:4])
            needed = REGION_BYTES if words[4] == "fresh" else size
            if len(self.memory) < needed:
                self.memory = bytearray(b"\1" * needed)
            source = Walk(memoryview(self.memory)[:needed], size)
            if words[0] == "latency":
                self.latency(size, count, source)
            elif self.role == RECEIVER:
                self.take(size, count, senders)
            else:
                self.give(count, source)

    def latency(self, size, count, source):
        if self.role == RECEIVER:
            self.say(ready=True)
        checked = 0
        begin = time.monotonic_ns()
        for turn in range(count):
            expected = stamp(1, turn)
            if self.role != RECEIVER:
                self.exchange.send(source.next(expected))
            data = self.exchange.receive(1)
            checked += is_stamped(data, size, expected)
            if self.role == RECEIVER:
                self.exchange.send(data)
        self.say(begin_ns=begin, end_ns=time.monotonic_ns(), checked=checked)

    def give(self, count, source):
        begin = time.monotonic_ns()
        for turn in range(count):
            self.exchange.send(source.next(stamp(self.role, turn)))
        self.say(begin_ns=begin, end_ns=time.monotonic_ns(), checked=count)

    def take(self, size, count, senders):
        self.say(ready=True)
        expected = [0] * (senders + 1)
        checked = 0
        begin = time.monotonic_ns()
        for _ in range(count * senders):
            data = self.exchange.receive(senders)
            sender = WORD.unpack_from(data)[0] >> 48
            checked += is_stamped(data, size, stamp(sender, expected[sender]))
            expected[sender] += 1
        self.say(begin_ns=begin, end_ns=time.monotonic_ns(), checked=checked)


class Walk:
    """The same buffer again and again, or each time the next part of a large one."""

    def __init__(self, memory, size):
        self.memory, self.size, self.at = memory, size, 0

    def next(self, word):
        here = self.memory[self.at : self.at + self.size]
        here[:8] = word
        here[-8:] = word
        self.at += self.size
        if self.at + self.size > len(self.memory):
            self.at = 0
        return here


def work(exchange, directory, role, core):
    os.sched_setaffinity(0, {core})
    worker = Worker(exchange, directory, role)
    try:
        worker.run()
    except Exception as error:
        worker.say(error=repr(error)[:300])
        raise


def main():
    variant, directory, _, senders, receiver_core, sender_core = sys.argv[1:]
    senders = int(senders)
    multiprocessing.set_start_method("fork")
    exchange = {"pipe": Pipes, "queue": Queues}[variant](senders)
    processes = []
    for role in range(senders + 1):
        core = int(receiver_core if role == RECEIVER else sender_core)
        process = multiprocessing.Process(target=work, args=(exchange, directory, role, core), daemon=True)
        process.start()
        processes.append(process)
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
