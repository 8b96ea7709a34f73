"""Walks the arguments that the stubs declare, and makes what their calls need, so that a test of
arguments forgets none."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import dataclasses
import inspect
import pathlib
from typing import Any, Iterator

import hamlyn

WAIT = 60
STUBS = pathlib.Path(hamlyn.__file__).parent / "_hamlyn.pyi"

# Strings that calls need to come as far as their other arguments.
STRINGS = {
    "change": "add",
    "item": "item",
    "kind": "private",
    "mode": "normal",
    "name": "alice",
    "rights": "write",
    "slow_readers": "block",
    "strategy": "proc",
    "to": "alice/nothing",
}
NUMBERS = {"bits": 64, "counting": 32, "most": 1, "piece_bytes": 16, "pieces": 1}


@dataclasses.dataclass(frozen=True)
class Argument:
    owner: str
    function: str
    name: str
    annotation: str
    # The others of the call that have no default: name, annotation, and whether they have no name.
    others: tuple[tuple[str, str, bool], ...]
    has_name: bool

    def __str__(self) -> str:
        return f"{self.owner}.{self.function}:{self.name}"


def arguments(*kinds: str) -> list[Argument]:
    """All arguments whose annotation names one of these types."""
    found = []
    for owner, function in _functions():
        given = function.args
        named = [*given.posonlyargs, *given.args]
        required = len(named) - len(given.defaults)
        all_of = [
            (each, number < required, number >= len(given.posonlyargs)) for number, each in enumerate(named) if each.annotation is not None
        ] + [(each, default is None, True) for each, default in zip(given.kwonlyargs, given.kw_defaults)]
        for each, _, has_name in all_of:
            assert each.annotation is not None
            names = {node.id for node in ast.walk(each.annotation) if isinstance(node, ast.Name)}
            if names & set(kinds):
                others = tuple(
                    (other.arg, ast.unparse(other.annotation), not other_has_name)
                    for other, is_required, other_has_name in all_of
                    if is_required and other is not each and other.annotation is not None
                )
                found.append(Argument(owner, function.name, each.arg, ast.unparse(each.annotation), others, has_name))
    return found


def _functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in ast.parse(STUBS.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield "", node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name not in ("__release_buffer__", "__buffer__"):
                    yield node.name, inner


class World:
    """One object of each class whose methods have arguments."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        alice = stack.enter_context(hamlyn.open("alice", strategy="np"))
        me = stack.enter_context(hamlyn.open())
        below = alice.interface
        inbox, log, group = alice.bind_datagram("inbox"), alice.bind_stream("log"), alice.bind_group("whole", 64)
        table, service = alice.bind_tagged_write("table", 4096), alice.bind_service("sums")
        frames, box = alice.bind_publisher("frames", message_bytes=4096), alice.bind_mailbox("box")
        group.begin_shared([64])
        sender = me.connect_stream("alice/log", WAIT)
        sender.send(b"a record", WAIT)
        me.flush(WAIT)
        client = me.connect_service("alice/sums", WAIT)
        pending = client.start(b"request", WAIT)
        queue, area = below.open_queue(16), below.allocate(4096)
        slot = below.open_slot(area, rights="all", queue=queue, entries=4)
        target = me.interface.target(slot.ticket(), WAIT)
        event = alice.next_event(WAIT)
        assert event is not None and event.peer is not None
        initiator = me.interface.open_initiator(target)
        pool, counter = hamlyn.Pool(1024, 4), hamlyn.CompletionCounter()
        number = below.show_pool(pool, event.peer)
        shared = me.interface.fetch_pool(slot.ticket(), number, WAIT, trust_peers=True)
        shared_slot = below.open_slot(below.allocate(4096, "shared"), rights="all")
        region = below.share(shared_slot)
        mine = me.interface
        terminus = mine.open_terminus()
        lane = below.open_lane(buffers=32)
        self.objects: dict[str, Any] = {
            "": hamlyn,
            "Manager": me,
            "Interface": mine,
            "DatagramReceiver": inbox,
            "DatagramSender": me.connect_datagram("alice/inbox", WAIT),
            "StreamReceiver": log,
            "StreamSender": sender,
            "Message": log.recv(WAIT),
            "TaggedWriteReceiver": table,
            "TaggedWriteSender": me.connect_tagged_write("alice/table", WAIT),
            "MailboxReceiver": box,
            "MailboxSender": me.connect_mailbox("alice/box", WAIT),
            "GroupReceiver": group,
            "GroupSender": me.connect_group("alice/whole", WAIT),
            "Service": service,
            "Call": service.recv(WAIT),
            "Client": client,
            "Pending": pending,
            "Publisher": frames,
            "Subscriber": me.connect_subscriber("alice/frames", WAIT),
            "Queue": mine.open_queue(16),
            "Area": mine.allocate(4096),
            "Slot": slot,
            "Target": target,
            "Peer": event.peer,
            "Initiator": initiator,
            "Operation": initiator.begin_read(0, 8, WAIT),
            "CompletionCounter": counter,
            "CompletionQueue": mine.open_completions(4),
            "Lane": lane,
            "LaneSender": mine.connect_lane(lane.seed, WAIT),
            "SharedLane": mine.open_shared_lane(),
            "Pool": pool,
            "SharedPool": shared,
            "Chunk": pool.take(8),
            "Terminus": terminus,
            "SendHandle": mine.send_msg(target, b"message", timeout=WAIT),
            "Notification": below.rcv(queue, WAIT),
            "RegionTicket": region.ticket,
            "Ticket": slot.ticket(),
            "Member": hamlyn.Manager.bind_group(alice, "other", 64).begin(),
            "Window": area.window(),
            "HandoverReader": below.allocate_handover(4, 1024)[1],
            "Network": hamlyn.Network(insecure=True),
            "OutgoingMessage": hamlyn.OutgoingMessage(b"outgoing"),
        }
        # Objects that others of them need.
        self.kept = [alice, region, shared_slot]

    def plain(self, name: str, annotation: str) -> Any:
        """A value with which a call comes as far as its other arguments."""
        for kind in ast.walk(ast.parse(annotation)):
            if isinstance(kind, ast.Name) and kind.id in self.objects:
                found = self.objects[kind.id]
                return [found] if annotation.startswith("Sequence") else found
        if "str" in annotation:
            return STRINGS[name]
        if annotation in ("int", "float", "Union[int, float]"):
            return NUMBERS.get(name, 8)
        if "_Bytes" in annotation:
            return [b"message"] if "Iterable" in annotation else bytearray(8)
        if "tuple" in annotation:
            return (0, 0, 8) if annotation.startswith("tuple") else [(0, 0, 8)]
        return {"Iterable[int]": [8], "Sequence[int]": [8], "range": range(1)}[annotation]

    def call(self, argument: Argument, value: Any) -> Any:
        """The call with that value, awaited if it is a task's."""
        owner = self.objects[argument.owner]
        if argument.function == "__new__":
            function = type(owner)
        else:
            function = getattr(owner, argument.function)
        unnamed = [self.plain(name, annotation) for name, annotation, is_unnamed in argument.others if is_unnamed]
        named = {name: self.plain(name, annotation) for name, annotation, is_unnamed in argument.others if not is_unnamed}
        if argument.name == "expected" and "change" in named:
            # It goes with that one alone.
            named["change"] = "compare_swap"
        if argument.has_name:
            named[argument.name] = value
        else:
            unnamed.insert(0, value)

        async def awaited() -> Any:
            result = function(*unnamed, **named)
            return await asyncio.wait_for(result, WAIT) if inspect.isawaitable(result) else result

        return asyncio.run(awaited())
