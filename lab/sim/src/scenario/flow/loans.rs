//! Loaned messages (decision 0024): a publisher that waits for slow readers, or does not, and
//! readers that keep samples and leave while they hold some.

use std::collections::VecDeque;

use hamlyn::loans::{Kept, LoanError, Publisher, PublisherOptions, SlowReaders, Subscriber};
use hamlyn::{ReceiveError, SendError, Wait};

use super::{FlowReceiver, FlowSender, Program, Step, Turn, wrong};
use crate::host::SimHost;
use crate::random::Random;
use crate::scenario::history::Oracle;
use crate::scenario::plan::Kind;
use crate::scenario::process;

const CHUNKS: u32 = 12;
/// Samples that a reader may have.
const DEPTH: u16 = 3;
const CONNECT_WAIT: Wait = Wait::For(std::time::Duration::from_micros(500));
const SHORT_WAIT: Wait = Wait::For(std::time::Duration::from_micros(30));

fn item(oracle: &Oracle<'_>) -> String {
    format!("loans-{}-{}", oracle.flow, oracle.life)
}

fn slow_readers(oracle: &Oracle<'_>) -> SlowReaders {
    match oracle.seed() % 3 {
        0 => SlowReaders::Block,
        1 => SlowReaders::Lose,
        _ => SlowReaders::Latest,
    }
}

/// What is published from now on is another publisher's.
fn opening(oracle: &Oracle<'_>) -> Result<(), String> {
    let shows_newest = slow_readers(oracle) == SlowReaders::Latest;
    let judged = oracle.judge(|models| {
        models.publications.opening(shows_newest);
        Ok(())
    });
    judged.map(drop)
}

/// Where messages are published.
pub(super) struct LoansPublisher {
    publisher: Option<Publisher<SimHost>>,
    random: Random,
    published: u32,
}

impl LoansPublisher {
    pub(super) fn open(program: &Program, oracle: &Oracle<'_>) -> Result<Self, String> {
        let mut this = Self {
            publisher: None,
            random: Random::new(oracle.seed()),
            published: 0,
        };
        this.bind(program, oracle)?;
        Ok(this)
    }

    fn bind(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<(), String> {
        self.published = 0;
        opening(oracle)?;
        // One before it has ended. A reader that comes in between may still find what that offered.
        self.publisher = None;
        opening(oracle)?;
        let options = PublisherOptions {
            message_bytes: Kind::Loans.longest_bytes(),
            chunks: CHUNKS,
            depth: DEPTH,
            readers: 8,
            slow_readers: slow_readers(oracle),
        };
        let publisher = program.bind_publisher(&item(oracle), options);
        self.publisher = Some(publisher.map_err(wrong("binding a publisher"))?);
        Ok(())
    }

    fn publish(&mut self, oracle: &Oracle<'_>, number: u64) -> Result<bool, String> {
        let Some(publisher) = &mut self.publisher else {
            return Ok(false);
        };
        let data = oracle.content(number);
        let mut loan = match publisher.loan(data.len(), Wait::Poll) {
            Ok(loan) => loan,
            Err(LoanError::AllInUse { .. }) => return Ok(false),
            Err(error) => return Err(wrong("a loan")(error)),
        };
        loan.copy_from_slice(&data);
        if self.random.below(16) == 0 {
            // Nobody gets it.
            drop(loan);
            return Ok(true);
        }
        let expected = oracle.judge(|models| Ok(models.publications.publishing(&data)))?;
        oracle.sending(&data);
        let wait = match self.random.below(3) {
            0 => SHORT_WAIT,
            _ => Wait::Poll,
        };
        let published = loan.publish(wait);
        let Some(expected) = expected else {
            return Ok(true);
        };
        match published {
            Ok(published) => {
                let (said, readers) = (published.number, published.readers);
                let judged =
                    oracle.judge(|models| models.publications.published(expected, said, readers));
                judged?;
                self.published += 1;
                oracle.came(number, &data);
                Ok(true)
            }
            Err(SendError::WouldBlock { .. }) => {
                oracle.judge(|models| models.publications.unpublished(expected))?;
                oracle.unsent();
                Ok(false)
            }
            Err(error) => Err(wrong("publishing")(error)),
        }
    }

    fn is_given_back(&self) -> bool {
        let free = self.publisher.as_ref().map(Publisher::chunks_free);
        free.is_none_or(|free| free >= CHUNKS as usize)
    }
}

impl FlowReceiver for LoansPublisher {
    fn seed(&self, _: &Program) -> Result<Vec<u8>, String> {
        // Readers find the publisher by its item.
        Ok(vec![0])
    }

    fn look(&mut self, program: &Program, oracle: &Oracle<'_>, wait: Wait) -> Result<bool, String> {
        let renewed_after = oracle.known().renewed_after;
        if renewed_after > 0 && self.published >= renewed_after && !oracle.is_old() {
            let publisher = self.publisher.as_mut();
            let flushed = publisher.map(|publisher| publisher.flush(SHORT_WAIT));
            if flushed == Some(Ok(true)) || self.random.below(4) == 0 {
                self.bind(program, oracle)?;
            }
            return Ok(true);
        }
        let Some(publisher) = &mut self.publisher else {
            return Ok(false);
        };
        if wait != Wait::Poll {
            // The loss of a peer interrupts it, which is told otherwise.
            let _ = program.wait(wait);
        }
        publisher.poll();
        let has_readers = publisher.readers() > 0;
        if !has_readers || oracle.is_old() || self.random.below(2) == 0 {
            return Ok(false);
        }
        match oracle.next(u64::MAX) {
            Some(number) => self.publish(oracle, number),
            None => Ok(false),
        }
    }

    fn is_done(&self, oracle: &Oracle<'_>) -> bool {
        oracle.is_ended() || oracle.is_through() && self.is_given_back()
    }

    fn close(self: Box<Self>, program: &Program, oracle: &Oracle<'_>) -> Result<(), String> {
        opening(oracle)?;
        let misbehaved = self.publisher.as_ref().map_or(0, Publisher::misbehaved);
        drop(self);
        program.session().poll();
        match misbehaved {
            0 => Ok(()),
            _ => Err(format!(
                "{misbehaved} readers are said to break the protocol"
            )),
        }
    }
}

/// A reader, and the samples that it keeps.
struct Reader {
    subscriber: Subscriber<SimHost>,
    /// Its number in the model.
    number: u64,
    kept: VecDeque<(Kept, Vec<u8>)>,
    taken: u32,
}

/// Where messages are read.
pub(super) struct LoansReader {
    to: String,
    reader: Option<Reader>,
    /// The publisher that was there at the first of the attempts to connect that came to nothing.
    found: Option<u64>,
}

impl LoansReader {
    pub(super) fn new(oracle: &Oracle<'_>) -> Self {
        let to = process::name(oracle.known().to);
        Self {
            to: format!("{to}/{}", item(oracle)),
            reader: None,
            found: None,
        }
    }

    fn connect(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<Step, String> {
        let found = self.found;
        let judged = oracle.judge(|models| {
            let publisher = models.publications.publisher();
            Ok((models.publications.connecting(found), publisher))
        })?;
        let Some((number, publisher)) = judged else {
            return Ok(Step::Nothing);
        };
        // A publisher that does not look offers no lanes, and one that was killed none any more.
        let Ok(subscriber) = program.connect_subscriber(&self.to, CONNECT_WAIT) else {
            self.found.get_or_insert(publisher);
            self.forget(oracle, number)?;
            return Ok(Step::Nothing);
        };
        self.found = None;
        self.reader = Some(Reader {
            subscriber,
            number,
            kept: VecDeque::new(),
            taken: 0,
        });
        Ok(Step::Moved)
    }

    fn forget(&self, oracle: &Oracle<'_>, number: u64) -> Result<(), String> {
        let judged = oracle.judge(|models| {
            models.publications.leaving(number);
            Ok(())
        });
        judged.map(drop)
    }

    /// Leaves, with samples in hand.
    fn leave(&mut self, oracle: &Oracle<'_>) -> Result<(), String> {
        if let Some(Reader {
            subscriber,
            number,
            kept,
            ..
        }) = self.reader.take()
        {
            self.forget(oracle, number)?;
            // What it keeps may be written anew from then on.
            drop(subscriber);
            drop(kept);
        }
        Ok(())
    }
}

impl Reader {
    fn release(&mut self, random: &mut Random) -> Result<bool, String> {
        let released = match random.below(2) {
            0 => self.kept.pop_front(),
            _ => self.kept.pop_back(),
        };
        let Some((kept, expected)) = released else {
            return Ok(false);
        };
        let mut bytes = vec![0; kept.len()];
        let read = kept.read_at(0, &mut bytes);
        read.map_err(wrong("reading a sample"))?;
        match bytes == expected {
            true => Ok(true),
            false => Err(format!(
                "message {} changed in its reader's hands",
                kept.number()
            )),
        }
    }

    /// Takes the next message.
    fn take(&mut self, oracle: &Oracle<'_>, random: &mut Random) -> Result<Option<Step>, String> {
        let wait = match random.below(8) {
            0 if self.kept.is_empty() => SHORT_WAIT,
            _ => Wait::Poll,
        };
        let sample = match self.subscriber.recv(wait) {
            Ok(Some(sample)) => sample,
            Ok(None) => return Ok(Some(Step::Nothing)),
            // Copies that were accepted and not sent are lost with a publisher that was not
            // flushed.
            Err(ReceiveError::Closed | ReceiveError::Incomplete) => {
                let closed = oracle.judge(|models| models.publications.closed(self.number));
                return closed.map(|_| None);
            }
            Err(ReceiveError::PeerLost(_)) => return Ok(Some(Step::Lost)),
            Err(error) => return Err(wrong("receiving a sample")(error)),
        };
        let number = sample.number();
        let bytes = sample.to_vec();
        match random.below(2) {
            0 => self.kept.push_back((sample.keep(), bytes.clone())),
            _ => drop(sample),
        }
        self.taken += 1;
        let lost = self.subscriber.lost();
        let may_lose = slow_readers(oracle) != SlowReaders::Block;
        oracle.judge(|models| {
            let publications = &mut models.publications;
            publications.came(self.number, number, &bytes, may_lose)?;
            publications.lost(self.number, lost)
        })?;
        Ok(Some(Step::Moved))
    }
}

impl FlowSender for LoansReader {
    fn step(&mut self, program: &Program, turn: Turn<'_>) -> Result<Step, String> {
        let (oracle, random) = (turn.oracle, turn.random);
        let renewed_after = oracle.known().renewed_after;
        let Some(reader) = &mut self.reader else {
            return match oracle.is_through() {
                true => Ok(Step::Nothing),
                false => self.connect(program, oracle),
            };
        };
        if renewed_after > 0 && reader.taken > 2 * renewed_after {
            self.leave(oracle)?;
            program.session().poll();
            return Ok(Step::Moved);
        }
        if (oracle.is_through() || random.below(4) == 0) && reader.release(random)? {
            reader.subscriber.reclaim();
            return Ok(Step::Moved);
        }
        match reader.take(oracle, random)? {
            Some(step) => Ok(step),
            // Its publisher ended.
            None => {
                self.leave(oracle)?;
                Ok(Step::Moved)
            }
        }
    }

    fn is_done(&self, oracle: &Oracle<'_>) -> bool {
        let only_last = slow_readers(oracle) == SlowReaders::Latest;
        let is_read = || oracle.judge(|models| Ok(models.publications.is_read(only_last)));
        let keeps = self
            .reader
            .as_ref()
            .is_some_and(|reader| !reader.kept.is_empty());
        let is_over = oracle.is_through() && !keeps && is_read() != Ok(Some(false));
        oracle.is_ended() || is_over
    }

    fn close(mut self: Box<Self>, program: &Program, oracle: &Oracle<'_>) -> Result<(), String> {
        self.leave(oracle)?;
        program.session().poll();
        Ok(())
    }
}
