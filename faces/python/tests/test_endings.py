"""The end of a `with` loses nothing that was accepted, or says so."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from typing import Any

import pytest
from conftest import running

import hamlyn

WAIT = 60
RECORDS = 3_000


def logs(pipe: Any, how: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with hamlyn.open() as me:
            log = me.connect_stream("alice/log", WAIT)
            for _ in range(RECORDS):
                log.send(b"x" * 100, WAIT)
            # The receiver has taken none of them yet.
            pipe.send("all are sent")
            if how == "flushed":
                log.flush(WAIT)
    pipe.send([str(warning.message) for warning in told])


@pytest.mark.parametrize("how", ["ends", "flushed"])
def test_records_of_a_manager_that_ends_arrive(how: str) -> None:
    mine, theirs = multiprocessing.Pipe()
    with hamlyn.open("alice") as alice:
        log = alice.bind_stream("log")
        with running(logs, theirs, how):
            # The library moves what has come in each of its calls.
            while not mine.poll(0.001):
                alice.poll()
            assert mine.recv() == "all are sent"
            received = 0
            while True:
                try:
                    assert log.recv_bytes(WAIT) == b"x" * 100
                    received += 1
                except hamlyn.Closed:
                    break
            assert received == RECORDS
            assert mine.recv() == []


def fills(pipe: Any, how: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        sent = 0
        try:
            with hamlyn.open() as me:
                log = me.connect_stream("alice/log", WAIT)
                with pytest.raises(hamlyn.TimedOut, match="nothing was sent"):
                    while True:
                        log.send(b"x" * 100, 0)
                        sent += 1
                with pytest.raises(hamlyn.TimedOut, match="do not send it again"):
                    log.flush(0)
                if how == "raises":
                    raise KeyError
                if how == "closed":
                    me.close()
        except KeyError:
            pass
    pipe.send((sent, [str(warning.message) for warning in told]))


@pytest.mark.parametrize("how", ["ends", "raises", "closed"])
def test_what_is_lost_is_said(how: str) -> None:
    mine, theirs = multiprocessing.Pipe()
    with hamlyn.open("alice") as alice:
        log = alice.bind_stream("log", pieces=2, piece_bytes=1024, limit_bytes=4096)
        with running(fills, theirs, how):
            sent, told = mine.recv()
            if how == "ends":
                (text,) = told
                assert f"ended with {sent} records" in text and "lost" in text
            else:
                assert told == []
            received = 0
            # The sender broke no rule.
            with pytest.raises(hamlyn.PeerGone, match="ended before all"):
                while log.recv_bytes(WAIT) is not None:
                    received += 1
            assert 0 < received < sent


def test_an_end_without_a_receiver_waits_for_nobody() -> None:
    begun = time.monotonic()
    with hamlyn.open("alice", strategy="np") as alice, hamlyn.open() as me:
        log = alice.bind_stream("log")
        sender = me.connect_stream("alice/log", WAIT)
        sender.send(b"x", WAIT)
        log.close()
        alice.close()
    assert time.monotonic() - begun < 4
    # Nor does one that another thread uses, or that was closed.
    with hamlyn.open() as me:
        me.close()
