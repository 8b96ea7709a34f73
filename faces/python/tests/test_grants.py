"""Grants: a peer stores long messages into pages by itself, as long as its grant lasts."""

from __future__ import annotations

import pytest

import hamlyn

WAIT = 60
PAGE = 4096


class Granting:
    """A slot of alice that may be granted, and her peer, who has a target there."""

    def __init__(self, alice: hamlyn.Manager, me: hamlyn.Manager) -> None:
        self.interface = alice.interface
        self.area = self.interface.allocate(4 * PAGE, "grantable")
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
    granting = Granting(alice, me)
    short, long = b"s" * 100, b"a" * 2000
    # Without a grant nothing is there before alice receives it.
    me.interface.send_msg(granting.target, long, PAGE, timeout=WAIT)
    assert granting.area.read(PAGE, 2000) == bytes(2000)
    granting.received(PAGE, long)

    grant = granting.interface.grant_pages(granting.slot, granting.peer, PAGE, 2 * PAGE)
    assert len(grant.ticket) == 2 * PAGE
    assert hamlyn.GrantTicket(bytes(grant.ticket)) == grant.ticket
    me.interface.accept_grant(grant.ticket, WAIT)
    assert (granting.interface.grants_made, me.interface.grants_accepted) == (1, 1)
    long = b"b" * 2000
    me.interface.send_msg(granting.target, long, PAGE, timeout=WAIT)
    assert granting.area.read(PAGE, 2000) == long
    granting.received(PAGE, long)
    # What is short, or lies elsewhere, goes as a copy.
    me.interface.send_msg(granting.target, short, PAGE, timeout=WAIT)
    me.interface.send_msg(granting.target, long, 0, timeout=WAIT)
    assert granting.area.read(0, 2000) == bytes(2000)
    assert granting.area.read(PAGE, 100) == long[:100]
    granting.received(PAGE, short)
    granting.received(0, long)


def test_what_is_revoked_is_not_stored(pair) -> None:
    alice, me = pair
    granting = Granting(alice, me)
    with granting.interface.grant_pages(granting.slot, granting.peer) as grant:
        me.interface.accept_grant(grant.ticket, WAIT)
        placed = b"p" * 1000
        me.interface.send_msg(granting.target, placed, timeout=WAIT)
        assert granting.area.read(0, 1000) == placed
    assert granting.interface.grants_made == 0
    grant.revoke()
    # It was announced, and not received before the grant ended.
    assert granting.interface.rcv(granting.queue, 0) is None
    assert any("grant" in reason for reason in alice.refusals), alice.refusals
    copied = b"c" * 1000
    me.interface.send_msg(granting.target, copied, timeout=WAIT)
    assert granting.area.read(0, 1000) == placed
    granting.received(0, copied)
    with pytest.raises(hamlyn.NotFound):
        me.interface.accept_grant(grant.ticket, WAIT)


def test_a_grant_that_is_dropped(pair) -> None:
    alice, me = pair
    granting = Granting(alice, me)
    grant = granting.interface.grant_pages(granting.slot, granting.peer, 0, PAGE)
    me.interface.accept_grant(grant.ticket, WAIT)
    assert me.interface.drop_grant(grant.ticket) is True
    assert me.interface.drop_grant(grant.ticket) is False
    me.interface.send_msg(granting.target, b"x" * 1000, timeout=WAIT)
    assert granting.area.read(0, 1000) == bytes(1000)
    granting.received(0, b"x" * 1000)


def test_what_cannot_be_granted(pair) -> None:
    alice, me = pair
    granting = Granting(alice, me)
    grant, slot, peer = granting.interface.grant_pages, granting.slot, granting.peer
    private = granting.interface.open_slot(granting.interface.allocate(PAGE))
    for wrong in (
        lambda: grant(private, peer),
        lambda: grant(slot, peer, 1, PAGE),
        lambda: grant(slot, peer, 0, PAGE - 1),
        lambda: grant(slot, peer, 0, 5 * PAGE),
        lambda: grant(slot, peer, (1 << 64) - 1, 2),
    ):
        with pytest.raises(hamlyn.Invalid):
            wrong()
    with pytest.raises(hamlyn.Invalid, match="another manager's"):
        me.interface.grant_pages(slot, peer)
    made = grant(slot, peer, 0, PAGE)
    with hamlyn.open() as other:
        # It was made for another, who alone has a link to fetch it over.
        with pytest.raises(hamlyn.NotFound, match="no link"):
            other.interface.accept_grant(made.ticket, WAIT)
        other.interface.target(slot.ticket(), WAIT)
        with pytest.raises((hamlyn.NotFound, hamlyn.Refused)):
            other.interface.accept_grant(made.ticket, WAIT)
    for nonsense in (b"nonsense", bytes(len(bytes(made.ticket))), bytes(slot.ticket())):
        with pytest.raises(hamlyn.Invalid):
            hamlyn.GrantTicket(nonsense)
    me.close()
    while alice.next_event(WAIT).kind != "peer_left":
        pass
    with pytest.raises(hamlyn.PeerGone):
        grant(slot, peer, PAGE, PAGE)
