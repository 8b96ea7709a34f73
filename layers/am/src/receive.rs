//! A node takes requests: it checks each, runs its handler while the message lies in place, and
//! sends the answer. In the order of `V 3.1`: the tag, which the port's key has checked; handler;
//! length; segment, offset and length there.

use hamlyn::ticket::TicketKind;
use hamlyn::{Host, Outbox, PortMessage, SendError, Ticket};

use crate::call::{Answer, AnswerState, Call, Outcome};
use crate::error::Reason;
use crate::name::Introduction;
use crate::peer::{EndpointId, Peer, Peers, ServedState};
use crate::port::Receiving;
use crate::traffic::{Again, Asked, Traffic};
use crate::wire::{Arguments, Body, Category, Head, Stamp, parse};
use crate::writing::Writing;

/// Outcome of a request.
enum Verdict {
    /// Its handler ran.
    Ran(AnswerState, Outcome),
    /// The layer answers it by a credit.
    Done,
    /// It answers it later.
    Asked(Asked),
    /// It comes back.
    Return(Reason),
}

/// Takes a request for that endpoint.
#[inline]
pub(crate) fn take_request<H: Host>(
    receiving: &mut Receiving,
    (peers, traffic): (&mut Peers, &mut Traffic),
    message: &PortMessage<'_, H>,
    outbox: &mut Outbox<'_, H>,
) {
    let admitted = admit(receiving.id, peers, traffic, message, outbox);
    let Some((peer, stamp, head)) = admitted else {
        return;
    };
    traffic.running = Some((peer.link, stamp));
    let is_plain = head.is_plain(message.len());
    let verdict = if is_plain {
        let arguments = Arguments::read(head.arguments(), |number| message.word(number));
        run_short(receiving, peer, traffic, stamp, head, &arguments)
    } else {
        let mut scratch = std::mem::take(&mut traffic.scratch);
        let bytes = stable_bytes(message, &mut scratch);
        let verdict = match parse(head, bytes) {
            Some(body) => run_longer(receiving, peer, traffic, stamp, head, &body, outbox),
            None => Verdict::Return(Reason::BadLength),
        };
        traffic.scratch = scratch;
        verdict
    };
    traffic.running = None;
    traffic.statistics.requests_taken += 1;
    conclude(peer, traffic, stamp, verdict, outbox);
}

/// Returns a request to an endpoint that was dropped.
#[inline(never)]
pub(crate) fn return_request<H: Host>(
    endpoint: EndpointId,
    (peers, traffic): (&mut Peers, &mut Traffic),
    message: &PortMessage<'_, H>,
    outbox: &mut Outbox<'_, H>,
) {
    let admitted = admit(endpoint, peers, traffic, message, outbox);
    let Some((peer, stamp, head)) = admitted else {
        return;
    };
    let mut scratch = std::mem::take(&mut traffic.scratch);
    let body = parse(head, stable_bytes(message, &mut scratch));
    if let Some(introduction) = body.and_then(|body| body.introduction) {
        introduce(peer, traffic, head, introduction, outbox);
    }
    traffic.scratch = scratch;
    traffic.statistics.requests_taken += 1;
    let verdict = Verdict::Return(Reason::BadEndpoint);
    conclude(peer, traffic, stamp, verdict, outbox);
}

/// A request comes to that endpoint. Nothing if it cannot be one.
#[inline(always)]
fn admit<'p, H: Host>(
    endpoint: EndpointId,
    peers: &'p mut Peers,
    traffic: &mut Traffic,
    message: &PortMessage<'_, H>,
    outbox: &Outbox<'_, H>,
) -> Option<(&'p mut Peer, Stamp, Head)> {
    let (link, stamp) = (message.from(), Stamp::from_bits(message.handler()));
    let head = Head::from_word(message.word(0));
    // No peer, if its link has ended: then nobody is there to be answered.
    if let (Some(head), Some(peer)) = (head, peers.enter(link)) {
        if peer.known.interface.is_none() {
            peer.known.interface = outbox.identity_of(link).map(|identity| identity.interface);
        }
        if let Some(served) = peer.served().admit(stamp) {
            served.endpoint = endpoint;
            if peer.is_hinted {
                peer.is_hinted = false;
                traffic.hints.push(link);
            }
            return Some((peer, stamp, head));
        }
    }
    traffic.statistics.violations += 1;
    None
}

/// The bytes of a message where its sender cannot write: in its port's memory, or copied.
pub(crate) fn stable_bytes<'m, H: Host>(
    message: &'m PortMessage<'_, H>,
    scratch: &'m mut Vec<u8>,
) -> &'m [u8] {
    if let Some(bytes) = message.as_bytes() {
        return bytes;
    }
    if scratch.len() < message.len() {
        scratch.resize(message.len(), 0);
    }
    let length = message.copy_to(scratch);
    &scratch[..length]
}

/// The handler's view of a request that was admitted.
#[inline]
fn call<'a>(
    endpoint: EndpointId,
    peer: &'a mut Peer,
    traffic: &'a Traffic,
    stamp: Stamp,
    head: Head,
) -> Call<'a> {
    let Peer { served, known, .. } = peer;
    let served = served.as_mut().and_then(|served| served.get(stamp));
    Call {
        link: peer.link,
        source: head.source(),
        known,
        replier: None,
        answer: served.map(|served| Answer {
            kept: &mut served.answer,
            stamp,
            endpoint,
            state: AnswerState::Nothing,
            traffic,
        }),
    }
}

fn state_of(call: &Call<'_>) -> AnswerState {
    call.answer
        .as_ref()
        .map_or(AnswerState::Nothing, |answer| answer.state)
}

#[inline(always)]
fn run_short(
    receiving: &mut Receiving,
    peer: &mut Peer,
    traffic: &Traffic,
    stamp: Stamp,
    head: Head,
    arguments: &Arguments,
) -> Verdict {
    let mut call = call(receiving.id, peer, traffic, stamp, head);
    match receiving.run_short(head.handler(), &mut call, arguments.as_slice()) {
        Ok(outcome) => Verdict::Ran(state_of(&call), outcome),
        Err(reason) => Verdict::Return(reason),
    }
}

#[inline(never)]
fn run_longer<H: Host>(
    receiving: &mut Receiving,
    peer: &mut Peer,
    traffic: &mut Traffic,
    stamp: Stamp,
    head: Head,
    body: &Body<'_>,
    outbox: &Outbox<'_, H>,
) -> Verdict {
    if let Some(introduction) = body.introduction {
        introduce(peer, traffic, head, introduction, outbox);
    }
    let (link, id) = (peer.link, receiving.id);
    let (place, data) = (body.place, body.data);
    match head.category() {
        Category::Short if data.is_empty() => {
            run_short(receiving, peer, traffic, stamp, head, &body.arguments)
        }
        Category::Short => Verdict::Return(Reason::BadLength),
        Category::Medium => {
            let mut call = call(id, peer, traffic, stamp, head);
            let arguments = body.arguments.as_slice();
            match receiving.run_medium(head.handler(), &mut call, data, arguments) {
                Ok(outcome) => Verdict::Ran(state_of(&call), outcome),
                Err(reason) => Verdict::Return(reason),
            }
        }
        Category::Bulk | Category::Stored => {
            let checked = match head.category() {
                Category::Bulk => receiving.store(head.handler(), place, data),
                _ => receiving.check_stored(head.handler(), place, data),
            };
            if let Err(reason) = checked {
                return Verdict::Return(reason);
            }
            let mut call = call(id, peer, traffic, stamp, head);
            let ran =
                receiving.run_bulk(head.handler(), &mut call, place, body.arguments.as_slice());
            match ran {
                Ok(outcome) => Verdict::Ran(state_of(&call), outcome),
                Err(reason) => Verdict::Return(reason),
            }
        }
        Category::Ask => match receiving.checked(head.handler(), place) {
            Ok(_) => Verdict::Asked(Asked {
                link,
                stamp,
                endpoint: id,
                data: None,
            }),
            Err(reason) => Verdict::Return(reason),
        },
        Category::Get => match receiving.segment_at(place) {
            Ok(_) if place.length_bytes == 0 => Verdict::Done,
            Ok(segment) => {
                let ticket = Ticket::from_bytes(data).ok();
                let is_slot = |ticket: &Ticket| ticket.kind == TicketKind::Slot;
                let target = ticket
                    .filter(is_slot)
                    .and_then(|ticket| outbox.target(link, &ticket));
                let Some(target) = target else {
                    return Verdict::Return(Reason::BadLength);
                };
                let writing = Writing::new(target, 0, place.length_bytes);
                Verdict::Asked(Asked {
                    link,
                    stamp,
                    endpoint: id,
                    data: Some((writing, place.offset, segment.number)),
                })
            }
            Err(reason) => Verdict::Return(reason),
        },
        Category::Tickets
        | Category::Return
        | Category::Reject
        | Category::Credits
        | Category::Room => Verdict::Return(Reason::BadHandler),
    }
}

/// An endpoint of the peer introduces itself; its node, too, if it was not known.
fn introduce<H: Host>(
    peer: &mut Peer,
    traffic: &mut Traffic,
    head: Head,
    introduction: &[u8; crate::wire::INTRODUCTION_BYTES],
    outbox: &Outbox<'_, H>,
) {
    let introduction = Introduction::from_bytes(introduction);
    // Its own word counts, whatever a name says that was mapped before.
    let is_new = peer.known.introduce(head.source(), introduction);
    if (is_new || peer.replies.is_none())
        && let Some(interface) = peer.known.interface
    {
        peer.replies = outbox.target(peer.link, &introduction.replies(interface));
        if peer.served().credits_owed() > 0 {
            traffic.owing.push(peer.link);
        }
    }
}

#[inline(always)]
fn conclude<H: Host>(
    peer: &mut Peer,
    traffic: &mut Traffic,
    stamp: Stamp,
    verdict: Verdict,
    outbox: &mut Outbox<'_, H>,
) {
    match verdict {
        Verdict::Ran(state, outcome) => {
            if let Err(failed) = outcome {
                traffic.note_failure(failed);
            }
            match state {
                AnswerState::Nothing => {
                    traffic.answer_empty(peer, stamp);
                    tell_credits_early(peer, traffic, outbox);
                }
                AnswerState::Deferred => {}
                AnswerState::Replied => {
                    traffic.statistics.replies_sent += 1;
                    send_answer(peer, traffic, stamp, outbox);
                }
            }
        }
        Verdict::Done => traffic.answer_empty(peer, stamp),
        Verdict::Asked(asked) => traffic.asked.push(asked),
        Verdict::Return(reason) => {
            if let Some(served) = peer.request(stamp) {
                let head = Head::new(Category::Return, 0).for_reason(reason.code());
                served.answer.write_short(head, &[]);
            }
            send_answer(peer, traffic, stamp, outbox);
        }
    }
}

/// Tells credits while there are more requests to take, so that their sender goes on meanwhile.
#[inline(always)]
fn tell_credits_early<H: Host>(peer: &mut Peer, traffic: &mut Traffic, outbox: &mut Outbox<'_, H>) {
    let least = u32::from(traffic.options.credits / 2).max(1);
    if let Peer {
        served: Some(served),
        replies: Some(target),
        ..
    } = peer
        && served.credits_owed() >= least
    {
        let (bytes, length) = served.credits_message();
        let sent = outbox.send_message(target, Stamp::CREDITS.bits(), &bytes[..length]);
        if let Ok(Some(_)) = sent {
            served.credits_told();
            traffic.statistics.credit_messages += 1;
            traffic.fence_after(peer);
        }
    }
}

/// Sends the answer that is kept, or has it sent when there is room, or a target.
#[inline]
fn send_answer<H: Host>(
    peer: &mut Peer,
    traffic: &mut Traffic,
    stamp: Stamp,
    outbox: &mut Outbox<'_, H>,
) {
    let Peer {
        link,
        served: Some(served),
        replies,
        ..
    } = peer
    else {
        return;
    };
    let Some(served) = served.get(stamp) else {
        return;
    };
    served.state = ServedState::Unsent;
    let sent = match replies {
        Some(target) => outbox.send_message(target, stamp.bits(), served.answer.bytes()),
        None => Ok(None),
    };
    match sent {
        Ok(Some(_)) => {
            served.state = ServedState::Sent;
            traffic.fence_after(peer);
        }
        // When the interface has moved packets.
        Ok(None) => traffic.again(*link, Again::Answer(stamp), 0),
        // Nobody waits for it any more.
        Err(SendError::PeerLost(_)) => served.state = ServedState::Sent,
        Err(_) => traffic.rejected.push((*link, stamp, Reason::BadLength)),
    }
}
