//! A node takes answers: replies, credits, returns, and rejections of its own replies.
//!
//! An answer counts if its stamp is that of a request which is outstanding at the peer of its link.
//! All others are counted as violations, and have no effect.

use hamlyn::engine::memory::LinkId;
use hamlyn::{Host, PortMessage};

use crate::call::{Call, Outcome};
use crate::error::Reason;
use crate::peer::{Peer, RecordState, ServedState};
use crate::port::Receiving;
use crate::receive::stable_bytes;
use crate::segment::Remote;
use crate::state::{Stashed, State};
use crate::transfer::Stage;
use crate::wire::{Arguments, CREDITS_BYTES, Category, Head, ROOM_BYTES, Stamp, listed, parse};

/// Takes an answer while that bundle is polled.
#[inline]
pub(crate) fn take_reply<H: Host>(state: &mut State, bundle: u32, message: &PortMessage<'_, H>) {
    let (link, stamp) = (message.from(), Stamp::from_bits(message.handler()));
    let Some(head) = Head::from_word(message.word(0)) else {
        state.traffic.statistics.violations += 1;
        return;
    };
    match head.category() {
        Category::Credits => return take_credits(state, link, message),
        Category::Room => return take_room(state, link, message),
        Category::Reject => {
            let served = state.peers.request(link, stamp);
            match served.map(|served| served.state) {
                Some(ServedState::Sent) => {
                    state.reply_came_back(link, stamp, Reason::of_code(head.reason()));
                }
                _ => state.traffic.statistics.violations += 1,
            }
            return;
        }
        _ => {}
    }
    let record = state.peers.record(link, stamp);
    let Some(record) = record.filter(|record| record.state.is_awaited()) else {
        state.traffic.statistics.violations += 1;
        return;
    };
    record.state = RecordState::Outstanding;
    if head.category() == Category::Return {
        return state.came_back(link, stamp, Reason::of_code(head.reason()));
    }
    let Some(endpoint) = state.endpoints.get(record.endpoint) else {
        // It was dropped: nobody wants the reply.
        return state.answered(link, stamp);
    };
    let is_plain = head.is_plain(message.len());
    if endpoint.bundle != bundle {
        // Its handler runs when its own bundle is polled.
        record.state = RecordState::Answered;
        let mut bytes = vec![0; message.len()];
        message.copy_to(&mut bytes);
        let owner = endpoint.bundle;
        if let Some(owner) = state.bundle(owner) {
            owner.stashed.push_back(Stashed {
                link,
                stamp,
                head,
                bytes,
            });
        }
        return;
    }
    if is_plain {
        let arguments = Arguments::read(head.arguments(), |number| message.word(number));
        run_short(state, link, stamp, head, &arguments);
        return;
    }
    let mut scratch = std::mem::take(&mut state.traffic.scratch);
    let bytes = stable_bytes(message, &mut scratch);
    take_longer(state, link, stamp, head, bytes);
    state.traffic.scratch = scratch;
}

/// Takes a reply that was stashed.
pub(crate) fn take_stashed(state: &mut State, stashed: &Stashed) {
    let Stashed {
        link,
        stamp,
        head,
        ref bytes,
    } = *stashed;
    let record = state.peers.record(link, stamp);
    if let Some(record) = record
        && record.state == RecordState::Answered
    {
        record.state = RecordState::Outstanding;
        take_longer(state, link, stamp, head, bytes);
    }
}

fn take_credits<H: Host>(state: &mut State, link: LinkId, message: &PortMessage<'_, H>) {
    let mut bytes = [0; CREDITS_BYTES];
    let length = message.copy_to(&mut bytes);
    for stamp in listed(&bytes[..length]) {
        let stamp = Stamp::from_bits(u16::from_le_bytes(*stamp));
        let Some(records) = state.peers.get(link).map(Peer::records) else {
            return;
        };
        match records.get(stamp).map(|record| record.state) {
            Some(awaited) if awaited.is_awaited() => {
                if let Some(answered) = records.answered(stamp) {
                    state.has_answer(&answered);
                }
            }
            // Its credit is free since the reply came.
            Some(RecordState::Rejecting) => records.free(stamp),
            // Told twice.
            _ => {}
        }
    }
}

/// Ports that refused requests have room.
fn take_room<H: Host>(state: &mut State, link: LinkId, message: &PortMessage<'_, H>) {
    let mut bytes = [0; ROOM_BYTES];
    let length = message.copy_to(&mut bytes);
    let ports = listed(&bytes[..length]);
    let State {
        endpoints,
        peers,
        traffic,
        ..
    } = state;
    let Some(peer) = peers.get(link) else {
        return;
    };
    traffic.hurry(peer, |record| {
        // The target of its translation names the port.
        endpoints.mapped_by(record).is_some_and(|mapped| {
            let port = mapped.target(false).ticket().slot.to_bits();
            ports.contains(&port.to_le_bytes())
        })
    });
}

#[inline]
fn run_short(state: &mut State, link: LinkId, stamp: Stamp, head: Head, arguments: &Arguments) {
    run(state, link, stamp, |receiving, call| {
        match head.category() {
            Category::Short => receiving.run_short(head.handler(), call, arguments.as_slice()),
            _ => Err(Reason::BadHandler),
        }
    });
}

/// Runs a handler of the requester, if `with` finds that the reply is good; otherwise rejects it.
#[inline]
fn run(
    state: &mut State,
    link: LinkId,
    stamp: Stamp,
    with: impl FnOnce(&mut Receiving, &mut Call<'_>) -> Result<Outcome, Reason>,
) {
    let State {
        endpoints,
        peers,
        traffic,
        ..
    } = state;
    let Some(peer) = peers.get(link) else {
        return;
    };
    let Some(record) = peer.records.as_mut().and_then(|records| records.get(stamp)) else {
        return;
    };
    let (id, translation) = (record.endpoint, record.translation);
    let Some(endpoint) = endpoints.get(id) else {
        return state.answered(link, stamp);
    };
    let mapped = endpoint.translations.numbered_ref(translation);
    let mut call = Call {
        link,
        source: u16::MAX,
        known: &peer.known,
        replier: mapped.map(|mapped| &mapped.name),
        answer: None,
    };
    traffic.statistics.replies_taken += 1;
    endpoint.stay.taken = endpoint.stay.taken.saturating_add(1);
    traffic.running_reply = Some((link, stamp));
    let ran = with(&mut endpoint.receiving, &mut call);
    traffic.running_reply = None;
    match ran {
        Ok(outcome) => {
            if let Err(failed) = outcome {
                traffic.note_failure(failed);
            }
            if let Some(answered) = peer.records().answered(stamp) {
                state.has_answer(&answered);
            }
        }
        Err(reason) => {
            state.traffic.statistics.replies_taken -= 1;
            state.give_back(id, translation, true);
            // Before the rejection is written over the message.
            if let Some(record) = state.peers.record(link, stamp)
                && let Some(number) = record.transfer.take()
            {
                // A bulk message was taken there; a question has no such answer.
                let category = record.message.head().map(|head| head.category());
                let failed = (category != Some(Category::Stored)).then_some(reason);
                state.transfer_answered(number, failed);
            }
            if let Some(peer) = state.peers.get(link) {
                state.traffic.reject(peer, stamp, reason);
            }
        }
    }
}

#[inline(never)]
fn take_longer(state: &mut State, link: LinkId, stamp: Stamp, head: Head, bytes: &[u8]) {
    let Some(body) = parse(head, bytes) else {
        return run(state, link, stamp, |_, _| Err(Reason::BadLength));
    };
    let arguments = body.arguments;
    match head.category() {
        Category::Short if body.data.is_empty() => run_short(state, link, stamp, head, &arguments),
        Category::Medium => run(state, link, stamp, |receiving, call| {
            receiving.run_medium(head.handler(), call, body.data, arguments.as_slice())
        }),
        Category::Bulk => run(state, link, stamp, |receiving, call| {
            receiving.store(head.handler(), body.place, body.data)?;
            receiving.run_bulk(head.handler(), call, body.place, arguments.as_slice())
        }),
        Category::Tickets => take_tickets(state, link, stamp, body.data),
        _ => run(state, link, stamp, |_, _| Err(Reason::BadHandler)),
    }
}

/// A peer says where data for a segment go: the transfer that asked begins to write there.
fn take_tickets(state: &mut State, link: LinkId, stamp: Stamp, bytes: &[u8]) {
    let number = state.peers.record(link, stamp);
    let number = number.and_then(|record| record.transfer);
    let State {
        endpoints,
        traffic,
        transfers,
        ..
    } = state;
    let transfer = number.and_then(|number| transfers.get(number));
    let Some(transfer) = transfer.filter(|it| !it.is_get && matches!(it.stage, Stage::Asked))
    else {
        // Nothing of that kind was asked for.
        traffic.statistics.violations += 1;
        return state.came_back(link, stamp, Reason::BadEndpoint);
    };
    let endpoint = endpoints.get(transfer.translation.endpoint);
    // It may be unmapped meanwhile.
    let mapped = endpoint
        .and_then(|endpoint| endpoint.translations.numbered(transfer.translation.number))
        .filter(|mapped| mapped.link == link);
    if let Some(mapped) = mapped
        && let Some(mut remote) = Remote::of_bytes(mapped.target(false), bytes)
    {
        remote.has_handler(transfer.handler);
        transfer.write(&remote.target, remote.proof());
        match &mut mapped.remote {
            Some(known) if known.proof() == remote.proof() => known.take_over(&remote),
            other => *other = Some(Box::new(remote)),
        }
    }
    state.answered(link, stamp);
}
