//! Messages that the interface gathers from send-buffer areas (Hamlyn 2.3). What a completion says
//! must be true: a buffer is used again the moment it is said to be free, and a message that can
//! not go any more has failed.

use hamlyn::engine::terminus::{Completion, GatherPiece, SendHandle, SendTag, TerminusError};
use hamlyn::{Area, Message, Strategy, Wait};

use super::places::{Tickets, metadata_of};
use super::{FlowSender, PLACES, Program, Sent, Step, Turn, outcome, send_message, targets, wrong};
use crate::scenario::history::Oracle;
use crate::scenario::plan::Kind;

/// Pieces of a message at most.
const PIECES: u64 = 4;
/// Between two pieces in memory.
const GAP_BYTES: u64 = 24;
const BUFFER_BYTES: u64 = Kind::Gather.longest_bytes() as u64 + PIECES * GAP_BYTES;
/// What is written over a buffer that is free again.
const USED: u8 = 0xee;
/// Messages at the end that may find no room, so that they fail when the link goes.
const LAST: u64 = 12;

/// A buffer in use.
struct Busy {
    handle: SendHandle,
    tag: SendTag,
}

/// Where such a flow begins.
pub(super) struct GatherSender {
    tickets: Tickets,
    area: Area,
    buffers: [Option<Busy>; PLACES as usize],
}

impl GatherSender {
    pub(super) fn grow(
        program: &Program,
        _: &Oracle<'_>,
        seed: &[u8],
    ) -> Result<Option<Self>, String> {
        let area = program.session().allocate(PLACES * BUFFER_BYTES);
        let area = area.map_err(wrong("allocating"))?;
        Ok(targets(program, seed)?.map(|targets| Self {
            tickets: Tickets::new(targets),
            area,
            buffers: [const { None }; PLACES as usize],
        }))
    }

    /// True if no message is at a buffer.
    fn is_free(&self) -> bool {
        self.buffers.iter().all(Option::is_none)
    }

    /// Frees buffers whose messages are done. Whether there were any.
    fn reap(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<bool, String> {
        let mut reaped = false;
        for (number, buffer) in self.buffers.iter_mut().enumerate() {
            let Some(busy) = buffer else { continue };
            let completion = program.session().completion(busy.handle);
            let completion = completion.map_err(wrong("asking for a completion"))?;
            let unbound = program
                .session()
                .unbind_area(busy.handle.terminus, busy.tag);
            match (completion, unbound) {
                (Completion::Pending, Err(TerminusError::InUse { .. })) => continue,
                (Completion::Pending, _) => {
                    return Err("a send-buffer area was taken away from a message".to_owned());
                }
                // Another message may be at it: it is this one's alone.
                (_, Err(error)) => return Err(wrong("unbinding")(error)),
                (Completion::Failed, Ok(())) if oracle.plan.is_lossless() => {
                    return Err("a message failed, and no link was lost".to_owned());
                }
                (_, Ok(())) => {}
            }
            *buffer = None;
            reaped = true;
            let at = number as u64 * BUFFER_BYTES;
            let filled = self.area.fill(at, BUFFER_BYTES, USED);
            filled.map_err(wrong("filling a buffer"))?;
        }
        Ok(reaped)
    }
}

/// Puts a message into a buffer, in pieces.
fn lay_out(
    area: &Area,
    at: u64,
    tag: SendTag,
    data: &[u8],
    turn: &mut Turn<'_>,
) -> Result<Vec<GatherPiece>, String> {
    let mut pieces = Vec::new();
    let (mut offset, mut rest) = (0, data);
    for left in (1..=1 + turn.random.below(PIECES)).rev() {
        let length = match left {
            1 => rest.len(),
            _ => turn.random.below(rest.len() as u64 + 1) as usize,
        };
        let (piece, after) = rest.split_at(length);
        area.write_at(at + offset, piece)
            .map_err(wrong("writing a buffer"))?;
        pieces.push(GatherPiece {
            tag,
            offset,
            length_bytes: length as u64,
        });
        offset += length as u64 + turn.random.below(GAP_BYTES);
        rest = after;
    }
    Ok(pieces)
}

impl FlowSender for GatherSender {
    fn step(&mut self, program: &Program, mut turn: Turn<'_>) -> Result<Step, String> {
        let oracle = turn.oracle;
        let reaped = self.reap(program, oracle)?;
        let idle = if reaped { Step::Moved } else { Step::Nothing };
        let next = self.tickets.next(program, oracle)?;
        let Some(number) = next.filter(|_| turn.is_due) else {
            return Ok(idle);
        };
        let place = number % PLACES;
        if self.buffers[place as usize].is_some() {
            return Ok(idle);
        }
        let terminus = program.terminus();
        let at = place * BUFFER_BYTES;
        let range = at..at + BUFFER_BYTES;
        let Ok(tag) = program.session().bind_area(terminus, &self.area, range) else {
            // Streams of this process have some of the few.
            return Ok(idle);
        };
        let pieces = lay_out(&self.area, at, tag, &oracle.content(number), &mut turn)?;
        let metadata = metadata_of(oracle, number);
        let target = self.tickets.of(number);
        let sent = send_message(oracle, number, |_| {
            let message = Message::new(&[]).metadata(&metadata);
            program
                .session()
                .send_gather(terminus, &target, &message, &pieces)
        })?;
        if let Sent::Yes(handle) = sent {
            self.buffers[place as usize] = Some(Busy { handle, tag });
            if turn.random.below(4) == 0 {
                let wait = Wait::For(std::time::Duration::from_micros(30));
                let drained = program.session().drain(handle, wait);
                drained.map_err(wrong("draining"))?;
            }
        } else {
            let unbound = program.session().unbind_area(terminus, tag);
            unbound.map_err(wrong("unbinding"))?;
        }
        Ok(sent.step())
    }

    fn is_done(&self, oracle: &Oracle<'_>) -> bool {
        oracle.is_ended() || oracle.is_sent() && self.is_free()
    }

    /// The areas of a terminus are few.
    fn give_back(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<bool, String> {
        self.reap(program, oracle)?;
        Ok(self.is_free())
    }

    /// Sends more than there is room for, closes the link, and looks at what became of it.
    fn close(mut self: Box<Self>, program: &Program, oracle: &Oracle<'_>) -> Result<(), String> {
        self.reap(program, oracle)?;
        if !oracle.lock().all_done() {
            return Ok(());
        }
        let terminus = program.terminus();
        let target = self.tickets.of(0);
        let bound = program
            .session()
            .bind_area(terminus, &self.area, 0..PLACES * BUFFER_BYTES);
        let Ok(tag) = bound else { return Ok(()) };
        let piece = GatherPiece {
            tag,
            offset: 0,
            length_bytes: u64::from(Kind::Gather.longest_bytes()),
        };
        let mut handles = Vec::new();
        if program.session().link_end(target.link()).is_none() {
            for _ in 0..LAST {
                let message = Message::new(&[]).silent();
                let sent = program
                    .session()
                    .send_gather(terminus, &target, &message, &[piece]);
                match outcome(sent)? {
                    Sent::Yes(handle) => handles.push(handle),
                    _ => break,
                }
            }
        }
        let pending: Vec<_> = handles
            .into_iter()
            .filter(|handle| program.session().completion(*handle) == Ok(Completion::Pending))
            .collect();
        program.session().disconnect(target.link());
        // A network processor goes on sending until it hears of that.
        let is_sent_beside = program.session().strategy() == Strategy::Np;
        for handle in pending {
            match program.session().drain(handle, Wait::millis(1)) {
                Ok(Completion::Failed) => {}
                Ok(Completion::Sent) if is_sent_beside => {}
                found => {
                    return Err(format!(
                        "a message was queued when its link was closed, and is {found:?}"
                    ));
                }
            }
        }
        let unbound = program.session().unbind_area(terminus, tag);
        unbound.map_err(wrong("unbinding"))
    }
}
