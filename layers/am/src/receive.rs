//! A node takes requests: it checks each, runs its handler while the message lies in place, and
//! sends the answer. In the order of `V 3.1`: the tag, which the port's key has checked; handler;
//! length; segment, offset and length there.

use hamlyn::engine::memory::LinkId;
use hamlyn::ticket::TicketKind;
use hamlyn::{Host, Outbox, PortMessage, SendError, Ticket};

use crate::call::{Answer, AnswerState, Call, Outcome};
use crate::error::Reason;
use crate::name::Introduction;
use crate::peer::{EndpointId, Known, Peer, ServedState};
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
    traffic: &mut Traffic,
    message: &PortMessage<'_, H>,
    outbox: &mut Outbox<'_, H>,
) {
    let Some((link, stamp, head)) = admit(receiving.id, traffic, message, outbox) else {
        return;
    };
    traffic.running = Some((link, stamp));
    let is_plain = head.category == Category::Short
        && !head.is_introduced
        && message.len() == head.short_bytes();
    let verdict = if is_plain {
        let arguments = Arguments::read(head.arguments, |number| message.word(number));
        run_short(receiving, traffic, link, stamp, head, &arguments)
    } else {
        let mut scratch = std::mem::take(&mut traffic.scratch);
        let bytes = stable_bytes(message, &mut scratch);
        let verdict = match parse(head, bytes) {
            Some(body) => run_longer(receiving, traffic, link, stamp, head, &body, outbox),
            None => Verdict::Return(Reason::BadLength),
        };
        traffic.scratch = scratch;
        verdict
    };
    traffic.running = None;
    traffic.statistics.requests_taken += 1;
    conclude(traffic, link, stamp, verdict, outbox);
}

/// Returns a request to an endpoint that was dropped.
pub(crate) fn return_request<H: Host>(
    endpoint: EndpointId,
    traffic: &mut Traffic,
    message: &PortMessage<'_, H>,
    outbox: &mut Outbox<'_, H>,
) {
    let Some((link, stamp, head)) = admit(endpoint, traffic, message, outbox) else {
        return;
    };
    let mut scratch = std::mem::take(&mut traffic.scratch);
    let body = parse(head, stable_bytes(message, &mut scratch));
    if let Some(introduction) = body.and_then(|body| body.introduction) {
        introduce(traffic, link, head, introduction, outbox);
    }
    traffic.scratch = scratch;
    traffic.statistics.requests_taken += 1;
    let verdict = Verdict::Return(Reason::BadEndpoint);
    conclude(traffic, link, stamp, verdict, outbox);
}

/// A request comes to that endpoint. Nothing if it cannot be one.
#[inline]
fn admit<H: Host>(
    endpoint: EndpointId,
    traffic: &mut Traffic,
    message: &PortMessage<'_, H>,
    outbox: &Outbox<'_, H>,
) -> Option<(LinkId, Stamp, Head)> {
    let (link, stamp) = (message.from(), Stamp::from_bits(message.handler()));
    let head = Head::from_word(message.word(0));
    // No peer, if its link has ended: then nobody is there to be answered.
    if let (Some(head), Some(peer)) = (head, traffic.peers.enter(link)) {
        if peer.known.interface.is_none() {
            peer.known.interface = outbox.identity_of(link).map(|identity| identity.interface);
        }
        if let Some(served) = peer.served().admit(stamp) {
            served.endpoint = endpoint;
            if peer.is_hinted {
                peer.is_hinted = false;
                traffic.hints.push(link);
            }
            return Some((link, stamp, head));
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

/// The handler's view of a request. Nothing if it is gone, which cannot be.
macro_rules! call {
    ($receiving:expr, $traffic:expr, $link:expr, $stamp:expr, $head:expr) => {{
        let most_bytes = $traffic.options.medium_bytes_max as usize;
        let peer = $traffic.peers.get($link);
        let Some(Peer {
            served: Some(served),
            known,
            ..
        }) = peer
        else {
            return Verdict::Done;
        };
        let Some(served) = served.get($stamp) else {
            return Verdict::Done;
        };
        let known: &Known = known;
        Call {
            link: $link,
            source: $head.source,
            known,
            replier: None,
            answer: Some(Answer {
                kept: &mut served.answer,
                stamp: $stamp,
                endpoint: $receiving,
                state: AnswerState::Nothing,
                most_bytes,
                dropped: &$traffic.dropped,
            }),
        }
    }};
}

fn state_of(call: &Call<'_>) -> AnswerState {
    call.answer
        .as_ref()
        .map_or(AnswerState::Nothing, |answer| answer.state)
}

#[inline]
fn run_short(
    receiving: &mut Receiving,
    traffic: &mut Traffic,
    link: LinkId,
    stamp: Stamp,
    head: Head,
    arguments: &Arguments,
) -> Verdict {
    let id = receiving.id;
    let mut call = call!(id, traffic, link, stamp, head);
    match receiving.run_short(head.handler, &mut call, arguments.as_slice()) {
        Ok(outcome) => Verdict::Ran(state_of(&call), outcome),
        Err(reason) => Verdict::Return(reason),
    }
}

#[inline(never)]
fn run_longer<H: Host>(
    receiving: &mut Receiving,
    traffic: &mut Traffic,
    link: LinkId,
    stamp: Stamp,
    head: Head,
    body: &Body<'_>,
    outbox: &Outbox<'_, H>,
) -> Verdict {
    if let Some(introduction) = body.introduction {
        introduce(traffic, link, head, introduction, outbox);
    }
    let id = receiving.id;
    let (place, data) = (body.place, body.data);
    match head.category {
        Category::Short if data.is_empty() => {
            run_short(receiving, traffic, link, stamp, head, &body.arguments)
        }
        Category::Short => Verdict::Return(Reason::BadLength),
        Category::Medium => {
            let mut call = call!(id, traffic, link, stamp, head);
            let arguments = body.arguments.as_slice();
            match receiving.run_medium(head.handler, &mut call, data, arguments) {
                Ok(outcome) => Verdict::Ran(state_of(&call), outcome),
                Err(reason) => Verdict::Return(reason),
            }
        }
        Category::Bulk | Category::Stored => {
            let checked = match head.category {
                Category::Bulk => receiving.store(head.handler, place, data),
                _ => receiving.check_stored(head.handler, place, data),
            };
            if let Err(reason) = checked {
                return Verdict::Return(reason);
            }
            let mut call = call!(id, traffic, link, stamp, head);
            let ran = receiving.run_bulk(head.handler, &mut call, place, body.arguments.as_slice());
            match ran {
                Ok(outcome) => Verdict::Ran(state_of(&call), outcome),
                Err(reason) => Verdict::Return(reason),
            }
        }
        Category::Ask => match receiving.checked(head.handler, place) {
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
    traffic: &mut Traffic,
    link: LinkId,
    head: Head,
    introduction: &[u8; crate::wire::INTRODUCTION_BYTES],
    outbox: &Outbox<'_, H>,
) {
    let introduction = Introduction::from_bytes(introduction);
    let Some(peer) = traffic.peers.get(link) else {
        return;
    };
    // Its own word counts, whatever a name says that was mapped before.
    let is_new = peer.known.introduce(head.source, introduction);
    if (is_new || peer.replies.is_none())
        && let Some(interface) = peer.known.interface
    {
        peer.replies = outbox.target(link, &introduction.replies(interface));
        if let Some(served) = &peer.served
            && !served.credits.is_empty()
        {
            traffic.owing.push(link);
        }
    }
}

#[inline]
fn conclude<H: Host>(
    traffic: &mut Traffic,
    link: LinkId,
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
                    traffic.answer_empty(link, stamp);
                    tell_credits_early(traffic, link, outbox);
                }
                AnswerState::Deferred => {}
                AnswerState::Replied => {
                    traffic.statistics.replies_sent += 1;
                    send_answer(traffic, link, stamp, outbox);
                }
            }
        }
        Verdict::Done => traffic.answer_empty(link, stamp),
        Verdict::Asked(asked) => traffic.asked.push(asked),
        Verdict::Return(reason) => {
            if let Some(served) = traffic.peers.request(link, stamp) {
                let mut head = Head::new(Category::Return, 0);
                head.reason = reason.code();
                served.answer.write_short(head, &[]);
            }
            send_answer(traffic, link, stamp, outbox);
        }
    }
}

/// Tells credits while there are more requests to take, so that their sender goes on meanwhile.
#[inline]
fn tell_credits_early<H: Host>(traffic: &mut Traffic, link: LinkId, outbox: &mut Outbox<'_, H>) {
    let least = usize::from(traffic.options.credits / 2).max(1);
    if let Some(Peer {
        served: Some(served),
        replies: Some(target),
        ..
    }) = traffic.peers.get(link)
        && served.credits.len() >= least
    {
        let (bytes, length) = served.credits_message();
        let sent = outbox.send_message(target, Stamp::CREDITS.bits(), &bytes[..length]);
        if let Ok(Some(_)) = sent {
            served.credits.clear();
            traffic.statistics.credit_messages += 1;
            traffic.fence_after(link);
        }
    }
}

/// Sends the answer that is kept, or has it sent when there is room, or a target.
#[inline]
pub(crate) fn send_answer<H: Host>(
    traffic: &mut Traffic,
    link: LinkId,
    stamp: Stamp,
    outbox: &mut Outbox<'_, H>,
) {
    let Some(peer) = traffic.peers.get(link) else {
        return;
    };
    let Peer {
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
            traffic.fence_after(link);
        }
        // When the interface has moved packets.
        Ok(None) => traffic.again(link, Again::Answer(stamp), 0),
        // Nobody waits for it any more.
        Err(SendError::PeerLost(_)) => served.state = ServedState::Sent,
        Err(_) => traffic.rejected.push((link, stamp, Reason::BadLength)),
    }
}
