"""Regions of one peer, which stores long messages into them by itself."""

from __future__ import annotations

import pytest

import hamlyn

WAIT = 60
PAGE = 4096


class Sharing:
    """A slot of alice that may be shared, and her peer, who has a target there."""

    def __init__(self, alice: hamlyn.Manager, me: hamlyn.Manager) -> None:
        self.interface = alice.interface
        self.area = self.interface.allocate(4 * PAGE, "shared")
        self.queue = self.interface.open_queue(16)
        self.slot = self.interface.open_slot(self.area, queue=self.queue)
        self.target = me.interface.target(self.slot.ticket(), WAIT)
        event = alice.next_event(WAIT)
        assert event.kind == "peer_arrived"
        self.peer = event.peer

    def received(self, offset: int, data: bytes) -> None:
        assert self.interface.rcv(self.queue, WAIT) is not None
        assert self.area.read(offset, len(data)) == data


@pytest.fixture
def pair():
    with hamlyn.open("alice") as alice, hamlyn.open() as me:
        yield alice, me


def test_long_messages_are_stored_in_place(pair) -> None:
    alice, me = pair
    sharing = Sharing(alice, me)
    short, long = b"s" * 100, b"a" * 2000
    # Without a region nothing is there before alice receives it.
    me.interface.send_msg(sharing.target, long, PAGE, timeout=WAIT)
    assert sharing.area.read(PAGE, 2000) == bytes(2000)
    sharing.received(PAGE, long)

    region = sharing.interface.share(sharing.slot, sharing.peer, PAGE, 2 * PAGE)
    assert len(region.ticket) == 2 * PAGE
    assert hamlyn.RegionTicket(bytes(region.ticket)) == region.ticket
    me.interface.attach(region.ticket, WAIT)
    assert (sharing.interface.regions_shared, me.interface.regions_attached) == (1, 1)
    long = b"b" * 2000
    me.interface.send_msg(sharing.target, long, PAGE, timeout=WAIT)
    assert sharing.area.read(PAGE, 2000) == long
    sharing.received(PAGE, long)
    # Messages that are short, or lie elsewhere, go as copies.
    me.interface.send_msg(sharing.target, short, PAGE, timeout=WAIT)
    me.interface.send_msg(sharing.target, long, 0, timeout=WAIT)
    assert sharing.area.read(0, 2000) == bytes(2000)
    assert sharing.area.read(PAGE, 100) == long[:100]
    sharing.received(PAGE, short)
    sharing.received(0, long)


def test_what_is_revoked_is_not_stored(pair) -> None:
    alice, me = pair
    sharing = Sharing(alice, me)
    with sharing.interface.share(sharing.slot, sharing.peer) as region:
        me.interface.attach(region.ticket, WAIT)
        placed = b"p" * 1000
        me.interface.send_msg(sharing.target, placed, timeout=WAIT)
        assert sharing.area.read(0, 1000) == placed
    assert sharing.interface.regions_shared == 0
    region.revoke()
    # It was announced, and not received before the region ended.
    assert sharing.interface.rcv(sharing.queue, 0) is None
    assert any("grant" in reason for reason in alice.refusals), alice.refusals
    copied = b"c" * 1000
    me.interface.send_msg(sharing.target, copied, timeout=WAIT)
    assert sharing.area.read(0, 1000) == placed
    sharing.received(0, copied)
    with pytest.raises(hamlyn.NotFound):
        me.interface.attach(region.ticket, WAIT)


def test_a_region_that_is_detached(pair) -> None:
    alice, me = pair
    sharing = Sharing(alice, me)
    region = sharing.interface.share(sharing.slot, sharing.peer, 0, PAGE)
    attached = me.interface.attach(region.ticket, WAIT)
    attached.close()
    attached.close()
    assert me.interface.regions_attached == 0
    me.interface.send_msg(sharing.target, b"x" * 1000, timeout=WAIT)
    assert sharing.area.read(0, 1000) == bytes(1000)
    sharing.received(0, b"x" * 1000)


def test_what_cannot_be_shared(pair) -> None:
    alice, me = pair
    sharing = Sharing(alice, me)
    share, slot, peer = sharing.interface.share, sharing.slot, sharing.peer
    private = sharing.interface.open_slot(sharing.interface.allocate(PAGE))
    for wrong in (
        lambda: share(private, peer),
        lambda: share(slot, peer, 1, PAGE),
        lambda: share(slot, peer, 0, PAGE - 1),
        lambda: share(slot, peer, 0, 5 * PAGE),
        lambda: share(slot, peer, (1 << 64) - 1, 2),
    ):
        with pytest.raises(hamlyn.Invalid):
            wrong()
    with pytest.raises(hamlyn.Invalid, match="another manager's"):
        me.interface.share(slot, peer)
    made = share(slot, peer, 0, PAGE)
    with hamlyn.open() as other:
        # It was made for another, who alone has a link to fetch it over.
        with pytest.raises(hamlyn.NotFound, match="no link"):
            other.interface.attach(made.ticket, WAIT)
        other.interface.target(slot.ticket(), WAIT)
        with pytest.raises((hamlyn.NotFound, hamlyn.Refused)):
            other.interface.attach(made.ticket, WAIT)
    for nonsense in (b"nonsense", bytes(len(bytes(made.ticket))), bytes(slot.ticket())):
        with pytest.raises(hamlyn.Invalid):
            hamlyn.RegionTicket(nonsense)
    me.close()
    while alice.next_event(WAIT).kind != "peer_left":
        pass
    with pytest.raises(hamlyn.PeerGone):
        share(slot, peer, PAGE, PAGE)
