"""Between two hosts: two names, each with a name service of its own, on the loopback interface."""

from __future__ import annotations

import contextlib
import socket

import numpy
from conftest import running

import hamlyn

WAIT = 60


def free_ports(count: int) -> list[int]:
    """Ports that nobody has at present."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def network(own: int, ports: list[int]) -> hamlyn.Network:
    names = ["one", "two"]
    hosts = {name: f"127.0.0.1:{port}" for name, port in zip(names, ports)}
    return hamlyn.Network(insecure=True, host=names[own], hosts=hosts, listen="127.0.0.1", name_service_port=ports[own])


def on_two(ports: list[int]) -> None:
    with hamlyn.open(network=network(1, ports)) as me:
        log = me.connect_stream("one/alice/log", WAIT)
        log.send(bytes(100_000))
        log.send(b"end")
        log.close(WAIT)
        frames = me.connect_subscriber("one/alice/frames", WAIT, trust_publisher=True)
        assert not frames.reads_in_place
        assert numpy.frombuffer(frames.recv(WAIT), "i4").sum() == 499_500
    with hamlyn.Channel.connect("one/numbers", WAIT, network=network(1, ports)) as channel:
        channel.send(numpy.arange(10_000))
        assert channel.recv(WAIT) == "received"


def test_two_hosts() -> None:
    ports = free_ports(2)
    here = network(0, ports)
    with hamlyn.open("alice", network=here) as alice, running(on_two, ports):
        log = alice.bind_stream("log")
        frames = alice.bind_publisher("frames")
        record = log.recv(WAIT)
        assert record == bytes(100_000)
        assert record.sender.node != 0
        assert log.recv_bytes(WAIT) == b"end"
        assert frames.await_readers(1, WAIT) == 1
        frames.publish(numpy.arange(1000, dtype="i4"))
        frames.flush(WAIT)
        with hamlyn.Channel.bind("numbers", network=here) as channel:
            assert (channel.recv(WAIT) == numpy.arange(10_000)).all()
            channel.send("received")
