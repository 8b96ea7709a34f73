//! The library's protocols as flows: datagrams, tagged writes, streams (Hamlyn 3.4).

use std::collections::VecDeque;

use hamlyn::engine::refusal::Refusal;
use hamlyn::stream::{self, Kept, StreamOptions, StreamSeed};
use hamlyn::{ReceiveError, Wait, datagram, tagged_write};

use super::{
    FlowReceiver, FlowSender, PLACES, Program, Sent, Step, Turn, outcome, parts_of, send_message,
    tickets, word_of, wrong,
};
use crate::host::SimHost;
use crate::random::Random;
use crate::scenario::history::{End, Oracle, noise};
use crate::scenario::plan::Kind;

const STREAM: StreamOptions = StreamOptions {
    pieces: 4,
    piece_bytes: 512,
    limit_bytes: 64 << 10,
    ahead: false,
};
/// Records that a receiver keeps while it takes others.
const HELD_MAX: usize = 3;
/// Bytes of a datagram to a receiver that is not ready.
const REFUSED_BYTES: usize = 16;

/// A receiver of datagrams, which is not always ready at once.
pub(super) struct DatagramReceiver {
    receiver: datagram::Receiver<SimHost>,
    /// What lies in the buffer while a second datagram is to be refused.
    kept: Option<Vec<u8>>,
    refused: u64,
}

impl DatagramReceiver {
    pub(super) fn open(program: &Program) -> Result<Self, String> {
        let receiver = datagram::Receiver::new(program, Kind::Datagram.longest_bytes());
        let mut receiver = receiver.map_err(wrong("opening"))?;
        receiver.ready();
        Ok(Self {
            receiver,
            kept: None,
            refused: 0,
        })
    }
}

impl FlowReceiver for DatagramReceiver {
    fn seed(&self, _: &Program) -> Result<Vec<u8>, String> {
        Ok(self.receiver.ticket().to_bytes().to_vec())
    }

    fn look(&mut self, program: &Program, oracle: &Oracle<'_>, wait: Wait) -> Result<bool, String> {
        if let Some(kept) = &self.kept {
            program.session().poll();
            if self.receiver.latest() != Some(kept) {
                return Err("a datagram changed in its receiver's hands".to_owned());
            }
            let info = self.receiver.info();
            let refusals = info.map_err(wrong("looking at a slot"))?.refusals;
            let spent = refusals.count(Refusal::EntrySpent);
            if spent < self.refused && !oracle.is_ended() && !oracle.is_old() {
                return Ok(false);
            }
            if spent > self.refused || refusals.total() != spent {
                return Err(format!("{refusals:?} were refused"));
            }
            // Its sender goes on when it has come, so the receiver must be ready by then.
            self.receiver.ready();
            oracle.came_next(&self.kept.take().unwrap_or_default());
            return Ok(true);
        }
        let datagram = match self.receiver.recv(wait) {
            Ok(Some(datagram)) => datagram,
            Ok(None) | Err(ReceiveError::PeerLost(_)) => return Ok(false),
            Err(error) => return Err(wrong("receiving a datagram")(error)),
        };
        if noise(oracle.seed(), oracle.sent(), 1)[0].is_multiple_of(3)
            && !oracle.is_ended()
            && !oracle.is_old()
        {
            self.refused += 1;
            let data = datagram.to_vec();
            datagram.keep();
            oracle.tell(End::Sender, Vec::new());
            self.kept = Some(data);
        } else {
            // Its sender goes on when it has come, so the receiver must be ready by then.
            let data = datagram.to_vec();
            drop(datagram);
            oracle.came_next(&data);
        }
        Ok(true)
    }

    fn close(self: Box<Self>, _: &Program, _: &Oracle<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// Where datagrams begin.
pub(super) struct DatagramSender {
    sender: datagram::Sender<SimHost>,
    heard: usize,
}

impl DatagramSender {
    pub(super) fn grow(program: &Program, seed: &[u8]) -> Result<Option<Self>, String> {
        let ticket = tickets(seed)?[0];
        let sender = datagram::Sender::grow(program, &ticket, Wait::Forever);
        Ok(sender.ok().map(|sender| Self { sender, heard: 0 }))
    }
}

impl FlowSender for DatagramSender {
    fn step(&mut self, _: &Program, turn: Turn<'_>) -> Result<Step, String> {
        let oracle = turn.oracle;
        if oracle.told(End::Sender, self.heard).is_some() {
            let data = noise(oracle.seed(), u64::MAX, REFUSED_BYTES);
            let sent = self.sender.send(&data, Wait::Poll);
            return Ok(match outcome(sent)? {
                Sent::Yes(_) => {
                    self.heard += 1;
                    Step::Moved
                }
                other => other.step(),
            });
        }
        let Some(number) = oracle.next(1).filter(|_| turn.is_due) else {
            return Ok(Step::Nothing);
        };
        let sender = &self.sender;
        let most = Kind::Datagram.longest_bytes() as usize;
        let sent = send_message(oracle, number, |data| {
            let offset = turn.random.below((most - data.len()) as u64 + 1) as u32;
            sender.send_to(offset, data, None, Wait::Forever)
        })?;
        Ok(sent.step())
    }

    fn is_done(&self, oracle: &Oracle<'_>) -> bool {
        oracle.is_ended() || oracle.is_sent() && oracle.told(End::Sender, self.heard).is_none()
    }
}

/// A receiver of tagged writes.
pub(super) struct TaggedReceiver {
    receiver: tagged_write::Receiver<SimHost>,
    random: Random,
}

impl TaggedReceiver {
    pub(super) fn open(program: &Program, oracle: &Oracle<'_>) -> Result<Self, String> {
        let bytes = PLACES * u64::from(Kind::Tagged.longest_bytes());
        let receiver = tagged_write::Receiver::new(program, bytes, PLACES as usize * 2);
        Ok(Self {
            receiver: receiver.map_err(wrong("opening"))?,
            random: Random::new(oracle.seed()),
        })
    }
}

impl FlowReceiver for TaggedReceiver {
    fn seed(&self, _: &Program) -> Result<Vec<u8>, String> {
        Ok(self.receiver.ticket().to_bytes().to_vec())
    }

    fn look(&mut self, _: &Program, oracle: &Oracle<'_>, wait: Wait) -> Result<bool, String> {
        let sought = match self.random.below(3) {
            0 => None,
            _ => self.random.one_of(&oracle.in_flight()).copied(),
        };
        let tag = match sought {
            Some(number) => {
                let tag = word_of(number, oracle.length(number));
                self.receiver.get_specific_tag(tag, wait)
            }
            None => self.receiver.get_tag(wait),
        };
        let tag = match tag {
            Ok(Some(tag)) => tag,
            Ok(None) | Err(ReceiveError::PeerLost(_)) => return Ok(false),
            Err(error) => return Err(wrong("getting a tag")(error)),
        };
        let (number, length) = parts_of(tag);
        if sought.is_some_and(|sought| sought != number) || length != oracle.length(number) {
            return Err(format!("tag {tag:x} was not the one that was sought"));
        }
        let mut bytes = vec![0; length];
        let at = number % PLACES * u64::from(Kind::Tagged.longest_bytes());
        let area = self.receiver.area();
        area.read_at(at, &mut bytes)
            .map_err(wrong("reading what was tagged"))?;
        oracle.came(number, &bytes);
        Ok(true)
    }

    fn close(self: Box<Self>, _: &Program, _: &Oracle<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// Where tagged writes begin: a ticket for each place.
pub(super) struct TaggedSender(Vec<tagged_write::Sender<SimHost>>);

impl TaggedSender {
    pub(super) fn grow(program: &Program, seed: &[u8]) -> Result<Option<Self>, String> {
        let whole = tickets(seed)?[0];
        let bytes = u64::from(Kind::Tagged.longest_bytes());
        let mut senders = Vec::new();
        for place in 0..PLACES {
            let ticket = whole.narrow(place * bytes, bytes);
            let ticket = ticket.map_err(wrong("narrowing a ticket"))?;
            let sender = tagged_write::Sender::grow(program, &ticket, Wait::Forever);
            senders.extend(sender.ok());
        }
        Ok((senders.len() as u64 == PLACES).then_some(Self(senders)))
    }
}

impl FlowSender for TaggedSender {
    fn step(&mut self, _: &Program, turn: Turn<'_>) -> Result<Step, String> {
        let oracle = turn.oracle;
        let Some(number) = oracle.next(PLACES).filter(|_| turn.is_due) else {
            return Ok(Step::Nothing);
        };
        let wait = match turn.random.below(2) {
            0 => Wait::Poll,
            _ => Wait::Forever,
        };
        let sender = &self.0[(number % PLACES) as usize];
        let sent = send_message(oracle, number, |data| {
            sender.send(0, data, word_of(number, data.len()), wait)
        })?;
        Ok(sent.step())
    }
}

/// A receiver of a stream that keeps some records for a while.
pub(super) struct StreamReceiver {
    receiver: stream::Receiver<SimHost>,
    held: VecDeque<(Kept, Vec<u8>)>,
    is_closed: bool,
}

impl StreamReceiver {
    pub(super) fn open(program: &Program) -> Result<Self, String> {
        let receiver = stream::Receiver::new(program, STREAM);
        Ok(Self {
            receiver: receiver.map_err(wrong("opening"))?,
            held: VecDeque::new(),
            is_closed: false,
        })
    }

    fn release(&mut self) -> Result<bool, String> {
        // In any order; the oldest now and then.
        let oldest = self.held.len().is_multiple_of(2);
        let released = match oldest {
            true => self.held.pop_front(),
            false => self.held.pop_back(),
        };
        let Some((record, expected)) = released else {
            return Ok(false);
        };
        let seen = self.receiver.view(&record);
        if seen != Some(expected.as_slice()) {
            return Err(format!(
                "a record changed in its receiver's hands: {seen:?} instead of {expected:?}"
            ));
        }
        Ok(true)
    }
}

impl FlowReceiver for StreamReceiver {
    fn seed(&self, _: &Program) -> Result<Vec<u8>, String> {
        Ok(self.receiver.make_seed().to_bytes().to_vec())
    }

    fn look(&mut self, _: &Program, oracle: &Oracle<'_>, wait: Wait) -> Result<bool, String> {
        // A receiver that waits must not keep what its sender may wait for.
        if wait != Wait::Poll || self.held.len() > HELD_MAX {
            self.release()?;
        }
        if self.is_closed {
            return self.release();
        }
        let wait = if self.held.is_empty() {
            wait
        } else {
            Wait::Poll
        };
        let received = self.receiver.recv(wait);
        let received = received.map(|record| {
            record.map(|record| {
                let bytes = record.to_vec();
                // Some are given back before the next one.
                let kept = (!bytes.len().is_multiple_of(5)).then(|| record.keep());
                (bytes, kept)
            })
        });
        let (bytes, kept) = match received {
            Ok(Some(record)) => record,
            Ok(None) | Err(ReceiveError::PeerLost(_)) => return self.release(),
            Err(ReceiveError::Closed) => {
                self.is_closed = true;
                if !oracle.is_through() && !oracle.is_ended() && !oracle.is_old() {
                    return Err("the stream ended before its last record".to_owned());
                }
                return Ok(true);
            }
            Err(error) => return Err(wrong("receiving a record")(error)),
        };
        oracle.came_next(&bytes);
        self.held.extend(kept.map(|kept| (kept, bytes)));
        Ok(true)
    }

    fn is_done(&self, oracle: &Oracle<'_>) -> bool {
        oracle.is_ended() || oracle.is_through() && self.is_closed && self.held.is_empty()
    }

    fn close(mut self: Box<Self>, _: &Program, _: &Oracle<'_>) -> Result<(), String> {
        while self.release()? {}
        Ok(())
    }
}

/// Where a stream begins.
pub(super) struct StreamSender(Option<Box<stream::Sender<SimHost>>>);

impl StreamSender {
    pub(super) fn grow(program: &Program, seed: &[u8]) -> Result<Option<Self>, String> {
        let seed = StreamSeed::from_bytes(seed).map_err(wrong("a seed"))?;
        let sender = stream::Sender::grow(program, &seed, Wait::Forever);
        Ok(sender.ok().map(|sender| Self(Some(Box::new(sender)))))
    }
}

impl FlowSender for StreamSender {
    fn step(&mut self, _: &Program, turn: Turn<'_>) -> Result<Step, String> {
        let oracle = turn.oracle;
        let Some(sender) = &mut self.0 else {
            return Ok(Step::Nothing);
        };
        if let Some(number) = oracle.next(u64::MAX) {
            if !turn.is_due {
                // What is held back would otherwise wait for the next.
                return Ok(match outcome(sender.flush(Wait::Poll))? {
                    Sent::Lost => Step::Lost,
                    _ => Step::Nothing,
                });
            }
            // Its receiver's program must take records for there to be room, and may itself wait
            // for this one.
            let sent = send_message(oracle, number, |data| sender.send(data, Wait::Poll))?;
            return Ok(sent.step());
        }
        if !oracle.is_sent() || oracle.is_ended() {
            return Ok(Step::Nothing);
        }
        match outcome(sender.flush(Wait::Poll))? {
            Sent::Yes(()) => {}
            other => return Ok(other.step()),
        }
        let Some(mut sender) = self.0.take() else {
            return Ok(Step::Nothing);
        };
        Ok(match outcome(sender.close(Wait::Forever))? {
            Sent::Lost => Step::Lost,
            _ => Step::Moved,
        })
    }

    fn is_done(&self, oracle: &Oracle<'_>) -> bool {
        oracle.is_ended() || self.0.is_none()
    }

    fn close(self: Box<Self>, _: &Program, _: &Oracle<'_>) -> Result<(), String> {
        if let Some(mut sender) = self.0 {
            // Its receiver may be gone.
            let _ = sender.close(Wait::millis(1));
        }
        Ok(())
    }
}
