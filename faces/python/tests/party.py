#!/usr/bin/env python3
"""A party of the promises in `faces/c/tests/conformance.rs`: it does what lines on standard input say, one call for each, and answers each
with a line: the status, by the numbers of `hamlyn_status` in C, and what came or the text of the error.

A line is a verb, an index, a time in milliseconds (-1: for ever), and up to two texts. Ends of an index share a number per kind, from 0 to 15.
`faces/c/tests/programs/party.c` understands the same lines. `make python` runs the promises with this program.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional

import hamlyn

ENDS = 16
STRATEGIES = ("proc", "np", "inject", "receive")
OK, TIMED_OUT, NOT_FOUND, PEER_LOST, MALFORMED = 0, 1, 6, 8, 11
# The first that fits.
STATUSES: tuple[tuple[type[BaseException], int], ...] = (
    (hamlyn.TimedOut, TIMED_OUT),
    (hamlyn.TooLong, 10),
    (hamlyn.HandleClosed, 3),
    (hamlyn.Forked, 3),
    (hamlyn.InUse, 4),
    (hamlyn.Released, 5),
    (BufferError, 5),
    (hamlyn.NotFound, NOT_FOUND),
    (hamlyn.Refused, 7),
    (hamlyn.PeerGone, PEER_LOST),
    (hamlyn.Closed, 9),
    (hamlyn.Malformed, MALFORMED),
    (hamlyn.Overrun, 12),
    (hamlyn.Cut, 13),
    (hamlyn.Taken, 14),
    (hamlyn.SystemFailed, 15),
    (hamlyn.Invalid, 2),
    (ValueError, 2),
)
# The keys of `refusals` in Python, by the numbers of `hamlyn_refusal` in C.
REFUSALS = (
    "the interface is not set up",
    "the host's handshake stopped",
    "no such slot",
    "the slot was closed",
    "the slot was revoked",
    "wrong key",
    "outside the slot's bounds",
    "no such metadata entry",
    "fast mode to a paranoid slot",
    "outside the entry's limits",
    "wrong key for the entry",
    "the one-shot entry is spent",
    "the slot does not grant this",
    "unknown kind of packet",
    "unknown flag",
    "metadata too long or not allowed",
    "the place is in use",
    "placed without a grant",
    "malformed request",
    "no such atomic operation",
    "the word is not aligned to its width",
    "too many requests without answer",
    "the port was closed",
    "the port is of another group",
    "the port has no such handler",
    "the port is not resident",
    "the port's queue is full",
)


class Failed(Exception):
    """A status that no exception of the library stands for."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def came(message: Any) -> Any:
    """A receive returns None where C has a status."""
    if message is None:
        raise Failed(TIMED_OUT, "nothing came in time")
    return message


def pattern(seed: int, length: int) -> bytes:
    """The bytes of a message of that length."""
    return bytes((seed * 31 + length + 7 * at) & 255 for at in range(length))


def fnv1a64(data: bytes) -> int:
    """The hash by which parties tell of bytes: FNV-1a, of 64 bits."""
    digest = 0xCBF29CE484222325
    for byte in data:
        digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return digest


class Party:
    """The manager of this party, and its end points by kind and index. Each method but the first is a verb."""

    def __init__(self) -> None:
        self.manager: Any = None
        self.ends: dict[tuple[str, int], Any] = {}

    def open(self, at: int, timeout: Optional[float], name: str, strategy: str) -> None:
        self.manager = hamlyn.open(name, strategy=STRATEGIES[int(strategy)])

    def bind_datagram(self, at: int, timeout: Optional[float], item: str, _: str) -> None:
        self.ends["inbox", at] = self.manager.bind_datagram(item, 64)

    def connect_datagram(self, at: int, timeout: Optional[float], to: str, _: str) -> None:
        self.ends["outbox", at] = self.manager.connect_datagram(to, timeout)

    def send_datagram(self, at: int, timeout: Optional[float], text: str, _: str) -> None:
        self.ends["outbox", at].send(text.encode(), timeout)

    def fence_datagram(self, at: int, timeout: Optional[float], _: str, __: str) -> None:
        self.ends["outbox", at].fence(timeout)

    def recv_datagram(self, at: int, timeout: Optional[float], _: str, __: str) -> str:
        with came(self.ends["inbox", at].recv(timeout)) as datagram:
            return bytes(datagram).decode()

    def hold_datagram(self, at: int, timeout: Optional[float], _: str, __: str) -> str:
        datagram = self.ends["held", at] = came(self.ends["inbox", at].recv(timeout))
        return bytes(datagram).decode()

    def release_datagram(self, at: int, timeout: Optional[float], _: str, __: str) -> None:
        self.ends.pop(("held", at)).release()

    def revoke_datagram(self, at: int, timeout: Optional[float], _: str, __: str) -> None:
        self.ends["inbox", at].revoke()

    def close_datagram(self, at: int, timeout: Optional[float], _: str, __: str) -> None:
        self.ends["inbox", at].close()

    def bind_stream(self, at: int, timeout: Optional[float], item: str, _: str) -> None:
        self.ends["log", at] = self.manager.bind_stream(item)

    def connect_stream(self, at: int, timeout: Optional[float], to: str, _: str) -> None:
        self.ends["writer", at] = self.manager.connect_stream(to, timeout)

    def send_records(self, at: int, timeout: Optional[float], count: str, _: str) -> None:
        """So many records, each the number of its turn."""
        writer = self.ends["writer", at]
        for turn in range(int(count)):
            writer.send(b"%d" % turn, timeout)
        writer.flush(timeout)

    def recv_records(self, at: int, timeout: Optional[float], count: str, _: str) -> None:
        for turn in range(int(count)):
            record = self.recv_record(at, timeout, "", "")
            if record != str(turn):
                raise Failed(MALFORMED, f"{record[:100]} came in the place of record {turn}")

    def recv_record(self, at: int, timeout: Optional[float], _: str, __: str) -> str:
        with came(self.ends["log", at].recv(timeout)) as record:
            return bytes(record).decode()

    def finish_stream(self, at: int, timeout: Optional[float], _: str, __: str) -> None:
        self.ends["writer", at].close(timeout)

    def bind_tags(self, at: int, timeout: Optional[float], item: str, _: str) -> None:
        self.ends["table", at] = self.manager.bind_tagged_write(item, 4096, 16)

    def connect_tags(self, at: int, timeout: Optional[float], to: str, _: str) -> None:
        self.ends["tagger", at] = self.manager.connect_tagged_write(to, timeout)

    def send_tag(self, at: int, timeout: Optional[float], text: str, tag: str) -> None:
        self.ends["tagger", at].send(0, text.encode(), int(tag), timeout)

    def fence_tags(self, at: int, timeout: Optional[float], _: str, __: str) -> None:
        self.ends["tagger", at].fence(timeout)

    def recv_tag(self, at: int, timeout: Optional[float], tag: str, _: str) -> None:
        came(self.ends["table", at].get_specific_tag(int(tag), timeout))

    def read_tags(self, at: int, timeout: Optional[float], length: str, _: str) -> str:
        return bytes(self.ends["table", at].area.read(0, int(length))).decode()

    def revoke_tags(self, at: int, timeout: Optional[float], _: str, __: str) -> None:
        self.ends["table", at].revoke()

    def bind_mailbox(self, at: int, timeout: Optional[float], item: str, queue_bytes: str) -> None:
        """A mailbox with a queue of so many bytes, 0 for the default; "-" is no name."""
        options = {"queue_bytes": int(queue_bytes)} if int(queue_bytes) else {}
        unnamed = item == "-"
        self.ends["mailbox", at] = self.manager.open_mailbox(**options) if unnamed else self.manager.bind_mailbox(item, **options)

    def connect_mailbox(self, at: int, timeout: Optional[float], to: str, _: str) -> None:
        self.ends["post", at] = self.manager.connect_mailbox(to, timeout)

    def grow_mailbox(self, at: int, timeout: Optional[float], digits: str, _: str) -> None:
        self.ends["post", at] = self.manager.connect_mailbox(hamlyn.Ticket(bytes.fromhex(digits)), timeout)

    def mail_bytes_max(self, at: int, timeout: Optional[float], _: str, __: str) -> str:
        longest = self.ends["post", at].message_bytes_max
        if longest is None:
            raise Failed(PEER_LOST, "the link to the mailbox has ended")
        return str(longest)

    def send_mail(self, at: int, timeout: Optional[float], seed: str, lengths: str) -> None:
        """Messages of these lengths, separated by commas, whose bytes the seed gives."""
        for length in map(int, lengths.split(",")):
            self.ends["post", at].send(pattern(int(seed), length), timeout)

    def fence_mailbox(self, at: int, timeout: Optional[float], _: str, __: str) -> None:
        self.ends["post", at].fence(timeout)

    def recv_mail(self, at: int, timeout: Optional[float], _: str, __: str) -> str:
        """The process that sent the next message, the length of that, and a hash of its bytes."""
        with came(self.ends["mailbox", at].recv(timeout)) as mail:
            if mail.sender is None:
                raise Failed(NOT_FOUND, "the peer is not known")
            return f"{mail.sender.process} {len(mail)} {fnv1a64(bytes(mail)):x}"

    def mailbox_ticket(self, at: int, timeout: Optional[float], _: str, __: str) -> str:
        return bytes(self.ends["mailbox", at].ticket).hex()

    def mailbox_info(self, at: int, timeout: Optional[float], reason: str, _: str) -> str:
        """Messages that wait, bytes that they take, messages that were queued, all refusals, and those for one reason."""
        info = self.ends["mailbox", at].info
        if not 0 <= int(reason) < len(REFUSALS):
            raise Failed(NOT_FOUND, "there is no refusal of that number")
        refused = info.refusals.get(REFUSALS[int(reason)], 0)
        return f"{info.waiting} {info.waiting_bytes} {info.queued} {sum(info.refusals.values())} {refused}"

    def revoke_mailbox(self, at: int, timeout: Optional[float], _: str, __: str) -> None:
        self.ends["mailbox", at].revoke()

    def bind_service(self, at: int, timeout: Optional[float], item: str, _: str) -> None:
        self.ends["service", at] = self.manager.bind_service(item)

    def connect_service(self, at: int, timeout: Optional[float], to: str, _: str) -> None:
        self.ends["client", at] = self.manager.connect_service(to, timeout)

    def serve(self, at: int, timeout: Optional[float], _: str, __: str) -> str:
        call = came(self.ends["service", at].recv(timeout))
        request = bytes(call)
        call.reply(request)
        return request.decode()

    def call(self, at: int, timeout: Optional[float], text: str, _: str) -> str:
        with self.ends["client", at].call(text.encode(), timeout) as reply:
            return bytes(reply).decode()

    def bind_publisher(self, at: int, timeout: Optional[float], item: str, _: str) -> None:
        self.ends["publisher", at] = self.manager.bind_publisher(item)

    def await_readers(self, at: int, timeout: Optional[float], _: str, __: str) -> None:
        if self.ends["publisher", at].await_readers(1, timeout) < 1:
            raise Failed(TIMED_OUT, "no reader came in time")

    def publish(self, at: int, timeout: Optional[float], text: str, _: str) -> str:
        loan = self.ends["publisher", at].loan(len(text), timeout)
        with memoryview(loan) as view:
            view[:] = text.encode()
        return str(loan.publish().readers)

    def connect_subscriber(self, at: int, timeout: Optional[float], to: str, _: str) -> None:
        self.ends["subscriber", at] = self.manager.connect_subscriber(to, timeout)

    def recv_sample(self, at: int, timeout: Optional[float], _: str, __: str) -> str:
        with came(self.ends["subscriber", at].recv(timeout)) as sample:
            return bytes(sample).decode()

    def offer_slot(self, at: int, timeout: Optional[float], item: str, _: str) -> None:
        """Memory that others write, read and change; its ticket is offered under a name."""
        interface = self.manager.interface
        area = self.ends["area", at] = interface.allocate(4096)
        slot = self.ends["slot", at] = interface.open_slot(area, rights="all")
        self.manager.offer(item, bytes(slot.ticket()))

    def connect_slot(self, at: int, timeout: Optional[float], name: str, item: str) -> None:
        ticket = hamlyn.Ticket(self.manager.ask(name, item, timeout))
        target = self.ends["target", at] = self.manager.interface.target(ticket, timeout)
        self.ends["initiator", at] = self.manager.interface.open_initiator(target)

    def revoke_slot(self, at: int, timeout: Optional[float], _: str, __: str) -> None:
        self.manager.interface.revoke_slot(self.ends["slot", at])

    def read_slot(self, at: int, timeout: Optional[float], length: str, _: str) -> str:
        return bytes(self.ends["area", at].read(0, int(length))).decode()

    def open_completions(self, at: int, timeout: Optional[float], places: str, _: str) -> None:
        self.ends["completions", at] = self.manager.interface.open_completions(int(places))

    def send_tracked(self, at: int, timeout: Optional[float], text: str, context: str) -> None:
        sent = self.manager.interface.send_msg(self.ends["target", at], text.encode(), timeout=timeout)
        self.ends["completions", at].track_send(sent, int(context))

    def fence_tracked(self, at: int, timeout: Optional[float], context: str, _: str) -> None:
        self.ends["completions", at].track_fence(self.ends["target", at], int(context))

    def add_tracked(self, at: int, timeout: Optional[float], operand: str, context: str) -> None:
        """Adds to the word at 8."""
        begun = self.ends["initiator", at].begin_atomic(8, "add", int(operand), timeout=timeout)
        self.ends["completions", at].track_operation(begun, int(context))

    def track_refusals(self, at: int, timeout: Optional[float], _: str, __: str) -> None:
        self.ends["completions", at].track_refusals()

    def set_link_context(self, at: int, timeout: Optional[float], context: str, _: str) -> None:
        self.manager.interface.set_link_context(self.ends["target", at], int(context))

    def next_completion(self, at: int, timeout: Optional[float], _: str, __: str) -> str:
        """Context, status, word, 1 for a packet that came back, and the text of the error."""
        completion = came(self.ends["completions", at].next(timeout))
        status = OK if completion.error is None else status_of(completion.error)
        return f"{completion.context} {status} {completion.word} {int(completion.is_returned)} {completion.error or ''}"

    def next_departure(self, at: int, timeout: Optional[float], _: str, __: str) -> str:
        while True:
            event = came(self.manager.next_event(timeout))
            if event.kind == "peer_left":
                return str(event.peer.process)

    def poll(self, at: int, timeout: Optional[float], _: str, __: str) -> None:
        self.manager.poll()


def status_of(error: BaseException) -> int:
    for kind, status in STATUSES:
        if isinstance(error, kind):
            return status
    raise error


def answer(verb: Callable[..., Optional[str]], *arguments: Any) -> str:
    try:
        return f"{OK} {verb(*arguments) or ''}"
    except Failed as failed:
        return f"{failed.status} {failed}"
    except Exception as error:
        return f"{status_of(error)} {error}"


def main() -> int:
    party = Party()
    for line in sys.stdin:
        name, at, limit_ms, text, more, *_ = line.split() + [""] * 5
        verb = None if name.startswith("_") else getattr(party, name, None)
        if not callable(verb) or not 0 <= int(at or 0) < ENDS:
            print(f"party: no verb is called {name}, or no end {at}", file=sys.stderr)
            return 2
        limit = int(limit_ms or 0)
        print(answer(verb, int(at or 0), None if limit < 0 else limit / 1000, text, more), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
