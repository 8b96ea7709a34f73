"""A stream of records: lines of standard input at one end, standard output at the other, read where they landed.

    python log.py collect > all.log
    journalctl | python log.py send
"""

from __future__ import annotations

import sys

import hamlyn


def collect() -> None:
    with hamlyn.open("collector") as collector:
        # The loop ends when the sender has closed; a sender that died in the middle is an error.
        for line in collector.bind_stream("log"):
            with line:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.write(b"\n")


def send() -> None:
    with hamlyn.open() as me, me.connect_stream("collector/log", timeout=10) as log:
        for line in sys.stdin.buffer:
            log.send(line.rstrip(b"\n"))


if __name__ == "__main__":
    if sys.argv[1:] == ["collect"]:
        collect()
    elif sys.argv[1:] == ["send"]:
        send()
    else:
        sys.exit("usage: log.py collect | log.py send")
