//! One-sided operations and stores to a slot of the receiver, of which the sender alone changes
//! anything (decision 0037). When one is complete, or a fence was answered, the receiver's memory
//! itself shows the effect.

mod change;
mod owner;

use hamlyn::one_sided::{
    CompletionCounter, Initiator, InitiatorOptions, Operation, OperationError, Width,
};
use hamlyn::{Completion, CompletionError, CompletionQueue, FenceError, SendError, Target, Wait};

use super::{FlowSender, Program, Step, Turn, targets, wrong};
use crate::random::Random;
use crate::scenario::history::Oracle;
use crate::scenario::plan::Kind;
use owner::{GUARD_BYTES, check_memory};

pub(super) use owner::Owner;

/// Operations under way, each to a place of its own.
const WINDOW: u64 = 6;
const PLACE_BYTES: u64 = Kind::OneSided.longest_bytes() as u64 + 72;
/// Longer ones are made in several requests: they wait for room, or a part of them would be made.
const SHORT_BYTES: usize = 128;
const SHORT_WAIT: Wait = Wait::For(std::time::Duration::from_micros(30));
const FENCE_WAIT: Wait = Wait::For(std::time::Duration::from_micros(300));

fn place(number: u64) -> u64 {
    number % WINDOW * PLACE_BYTES
}

/// Where bytes of the slot are in the area.
fn in_area(at: u64) -> usize {
    (GUARD_BYTES + at) as usize
}

/// An operation under way.
struct Begun {
    number: u64,
    asked: Asked,
    told: Told,
}

#[derive(Clone, Copy)]
enum Asked {
    Read {
        at: u64,
        length: usize,
    },
    Word {
        at: u64,
        width: Width,
    },
    Put,
    /// Complete when a fence is.
    Store,
}

/// How its end is told.
#[derive(Clone, Copy)]
enum Told {
    Finished(Operation),
    Tracked,
    Counted,
    Fenced,
}

/// Where operations begin.
pub(super) struct OneSidedSender {
    target: Target,
    stores: Target,
    read_only: Target,
    initiator: Option<Initiator>,
    counter: CompletionCounter,
    counted: u64,
    queue: CompletionQueue,
    begun: Vec<Begun>,
    /// Operations since the initiator was opened.
    since: u32,
}

impl OneSidedSender {
    pub(super) fn grow(program: &Program, seed: &[u8]) -> Result<Option<Self>, String> {
        let Some(targets) = targets(program, seed)? else {
            return Ok(None);
        };
        let [target, stores, read_only] = targets[..] else {
            return Err("tickets are missing".to_owned());
        };
        let queue = program.session().open_completions(2 * WINDOW as usize);
        Ok(Some(Self {
            target,
            stores,
            read_only,
            initiator: None,
            counter: CompletionCounter::default(),
            counted: 0,
            queue: queue.map_err(wrong("opening a completion queue"))?,
            begun: Vec::new(),
            since: 0,
        }))
    }

    /// Begins the next operation. Nothing if there is no room, or its peer is lost.
    fn begin(
        &mut self,
        program: &Program,
        oracle: &Oracle<'_>,
        random: &mut Random,
        number: u64,
    ) -> Result<Step, String> {
        let Some(initiator) = &mut self.initiator else {
            let options = InitiatorOptions {
                landing_bytes: WINDOW * PLACE_BYTES,
            };
            let opened = program.session().open_initiator(self.target, options);
            self.initiator = Some(opened.map_err(wrong("opening an initiator"))?);
            return Ok(Step::Moved);
        };
        let data = oracle.content(number);
        let at = place(number) + 8 * random.below(8);
        let (length, wait) = match data.len() > SHORT_BYTES {
            true => (data.len(), Wait::Forever),
            false => (data.len(), Wait::Poll),
        };
        let choice = random.below(6);
        let (asked, after) = match choice {
            0 => (Asked::Read { at, length }, Vec::new()),
            1 => {
                let width = Width::Bits64;
                (Asked::Word { at, width }, Vec::new())
            }
            2 => {
                let width = *random
                    .one_of(&[Width::Bits32, Width::Bits64])
                    .unwrap_or(&Width::Bits64);
                (Asked::Word { at, width }, Vec::new())
            }
            3 | 4 => (Asked::Put, data.clone()),
            _ => (Asked::Store, data.clone()),
        };
        let atomic = match asked {
            Asked::Word { width, .. } if choice == 2 => Some(change::atomic(random, width)),
            _ => None,
        };
        let mut after = after;
        oracle.judge(|models| {
            if let (Some((atomic, kept)), Asked::Word { width, .. }) = (&atomic, asked) {
                let before = models.remote.read(in_area(at), width.bytes() as usize);
                after = kept(atomic.operand, before);
            }
            if asked.is_store() {
                models.stored_bytes += length as u64;
            }
            models.remote.beginning(number, in_area(at), after.clone());
            Ok(())
        })?;
        oracle.sending(&data);
        let mut interface = program.session();
        let begun = match (asked, &atomic) {
            (Asked::Read { .. }, _) => {
                interface.begin_read(initiator, at, place(number), length as u64, wait)
            }
            (Asked::Word { .. }, Some((atomic, _))) => {
                interface.begin_atomic(initiator, at, *atomic, Wait::Poll)
            }
            (Asked::Word { .. }, None) => interface.begin_read_word(initiator, at, Wait::Poll),
            (Asked::Put, _) => interface.begin_put(initiator, at, &data, wait),
            (Asked::Store, _) => {
                drop(interface);
                let terminus = program.terminus();
                let stored = program
                    .session()
                    .store(terminus, &self.stores, at, &data, wait);
                let told = match stored {
                    Ok(()) => Ok(Told::Fenced),
                    Err(SendError::WouldBlock { .. }) => Err(Step::Nothing),
                    Err(SendError::PeerLost(_)) => Err(Step::Lost),
                    Err(error) => return Err(wrong("storing")(error)),
                };
                return self.note(oracle, number, asked, told, length as u64);
            }
        };
        let operation = match begun {
            Ok(operation) => operation,
            Err(OperationError::WouldBlock) => {
                drop(interface);
                return self.note(oracle, number, asked, Err(Step::Nothing), 0);
            }
            Err(OperationError::PeerLost(_)) => {
                drop(interface);
                return self.note(oracle, number, asked, Err(Step::Lost), 0);
            }
            Err(error) => return Err(wrong("beginning an operation")(error)),
        };
        let told = match random.below(4) {
            0 => {
                let queue = &self.queue;
                let told = match asked {
                    Asked::Word { .. } => interface.track_word(queue, initiator, operation, number),
                    _ => interface.track_operation(queue, initiator, operation, number),
                };
                told.map_err(wrong("having a completion tracked"))?;
                Told::Tracked
            }
            1 if !matches!(asked, Asked::Word { .. }) => {
                let told = interface.count_completion(initiator, operation, &self.counter);
                told.map_err(wrong("having a completion counted"))?;
                self.counted += 1;
                Told::Counted
            }
            _ => Told::Finished(operation),
        };
        drop(interface);
        self.since += 1;
        self.note(oracle, number, asked, Ok(told), 0)
    }

    /// Notes an operation that was begun, or was not.
    fn note(
        &mut self,
        oracle: &Oracle<'_>,
        number: u64,
        asked: Asked,
        told: Result<Told, Step>,
        stored_bytes: u64,
    ) -> Result<Step, String> {
        match told {
            Ok(told) => {
                self.begun.push(Begun {
                    number,
                    asked,
                    told,
                });
                Ok(Step::Sent)
            }
            Err(step) => {
                oracle.judge(|models| {
                    // A part may have gone before the link was lost, and be there or not.
                    if step != Step::Lost {
                        models.remote.unbegun(number);
                        models.stored_bytes -= stored_bytes;
                    }
                    Ok(())
                })?;
                oracle.unsent();
                Ok(step)
            }
        }
    }

    /// The operation of that index is complete: judges it.
    fn complete(
        &mut self,
        oracle: &Oracle<'_>,
        index: usize,
        value: Option<u64>,
    ) -> Result<(), String> {
        let Begun { number, asked, .. } = self.begun.swap_remove(index);
        let returned = match (asked, value, &self.initiator) {
            (Asked::Word { at, width }, Some(value), _) => {
                Some((at, value.to_le_bytes()[..width.bytes() as usize].to_vec()))
            }
            (Asked::Read { at, length }, _, Some(initiator)) => {
                let mut bytes = vec![0; length];
                let landed = initiator.landed(place(number), &mut bytes);
                landed.map_err(wrong("reading what landed"))?;
                Some((at, bytes))
            }
            _ => None,
        };
        check_memory(oracle, |remote, memory| {
            if let Some((at, bytes)) = returned {
                remote.returned(number, in_area(at), &bytes)?;
            }
            remote.completed(number, memory)
        })?;
        oracle.came(number, &oracle.content(number));
        Ok(())
    }

    /// Looks whether an operation has come to its end.
    fn finish(
        &mut self,
        program: &Program,
        oracle: &Oracle<'_>,
        random: &mut Random,
    ) -> Result<Step, String> {
        if let Some(completion) = self.next_completion(program) {
            let number = completion.context;
            let is_it = |begun: &Begun| begun.number == number;
            let Some(index) = self.begun.iter().position(is_it) else {
                return Err(format!("the end of operation {number} was told twice"));
            };
            if !matches!(self.begun[index].told, Told::Tracked) {
                return Err(format!("the end of operation {number} was told"));
            }
            return match completion.result {
                Err(CompletionError::Operation(error)) => self.fetched(oracle, index, Err(error)),
                Err(error) => Err(wrong("a tracked operation")(error)),
                Ok(value) => self.fetched(oracle, index, Ok(value)),
            };
        }
        let is_counted = |begun: &Begun| matches!(begun.told, Told::Counted);
        if self.counter.ended() == self.counted && self.begun.iter().any(is_counted) {
            if self.counter.failed() > 0 {
                return Ok(Step::Lost);
            }
            while let Some(index) = self.begun.iter().position(is_counted) {
                self.complete(oracle, index, None)?;
            }
            return Ok(Step::Moved);
        }
        if self.begun.is_empty() {
            return Ok(Step::Nothing);
        }
        let index = random.below(self.begun.len() as u64) as usize;
        let wait = match random.below(6) {
            0 => SHORT_WAIT,
            _ => Wait::Poll,
        };
        match self.begun[index].told {
            Told::Finished(operation) => {
                let fetched = self.fetch(program, operation, wait);
                self.fetched(oracle, index, fetched)
            }
            Told::Fenced if random.below(4) == 0 => self.fence(program, oracle),
            _ => Ok(Step::Nothing),
        }
    }

    fn fetch(
        &mut self,
        program: &Program,
        operation: Operation,
        wait: Wait,
    ) -> Result<u64, OperationError> {
        let initiator = self.initiator.as_mut();
        let initiator = initiator.ok_or(OperationError::NotOutstanding)?;
        program.session().finish_word(initiator, operation, wait)
    }

    fn fetched(
        &mut self,
        oracle: &Oracle<'_>,
        index: usize,
        fetched: Result<u64, OperationError>,
    ) -> Result<Step, String> {
        match fetched {
            Ok(value) => {
                self.complete(oracle, index, Some(value))?;
                Ok(Step::Moved)
            }
            Err(OperationError::TimedOut) => Ok(Step::Nothing),
            Err(OperationError::PeerLost(_)) => Ok(Step::Lost),
            Err(error) => Err(wrong("an operation")(error)),
        }
    }

    /// Waits until all that was begun is in its place. What only a fence tells of is complete then.
    fn fence(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<Step, String> {
        let begun: Vec<_> = self.begun.iter().map(|begun| begun.number).collect();
        let link = self.target.link();
        let fenced = program.session().fence_link(link, FENCE_WAIT);
        match fenced {
            Ok(()) => {}
            // Other flows of this process have packets refused.
            Err(FenceError::Refused { .. }) => {}
            Err(FenceError::TimedOut { .. }) => return Ok(Step::Nothing),
            Err(FenceError::PeerLost(_) | FenceError::NoSuchLink) => return Ok(Step::Lost),
            Err(error) => return Err(wrong("a fence")(error)),
        }
        check_memory(oracle, |remote, memory| remote.fenced(&begun, memory))?;
        let is_fenced = |begun: &Begun| matches!(begun.told, Told::Fenced);
        while let Some(index) = self.begun.iter().position(is_fenced) {
            self.complete(oracle, index, None)?;
        }
        Ok(Step::Moved)
    }

    /// Drops the initiator with what it has under way: a fence tells when that is over.
    fn renew(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<Step, String> {
        if self.initiator.take().is_some() {
            program.session().poll();
            for begun in &mut self.begun {
                begun.told = Told::Fenced;
                if matches!(begun.asked, Asked::Read { .. } | Asked::Word { .. }) {
                    // What it would have given is not known, its effect is.
                    begun.asked = Asked::Put;
                }
            }
            while self.next_completion(program).is_some() {}
            (self.counter, self.counted) = (CompletionCounter::default(), 0);
        }
        let step = self.fence(program, oracle)?;
        if self.begun.is_empty() || step == Step::Lost {
            self.since = 0;
        }
        Ok(step)
    }

    fn next_completion(&self, program: &Program) -> Option<Completion> {
        let mut session = program.session();
        // Ends are told by polls.
        session.poll();
        session.next_completion(&self.queue)
    }

    /// Tries to change what may only be read.
    fn trespass(&self, program: &Program, number: u64) -> Result<(), String> {
        let options = InitiatorOptions { landing_bytes: 0 };
        let opened = program.session().open_initiator(self.read_only, options);
        let mut initiator = opened.map_err(wrong("opening an initiator"))?;
        let put = program
            .session()
            .put(&mut initiator, place(number), b"never", SHORT_WAIT);
        match put {
            Ok(()) => Err("a put was carried out that was not granted".to_owned()),
            Err(_) => Ok(()),
        }
    }
}

impl Asked {
    fn is_store(&self) -> bool {
        matches!(self, Self::Store)
    }
}

impl FlowSender for OneSidedSender {
    fn step(&mut self, program: &Program, turn: Turn<'_>) -> Result<Step, String> {
        let (oracle, random) = (turn.oracle, turn.random);
        let renewed_after = oracle.known().renewed_after;
        if renewed_after > 0 && self.since >= renewed_after {
            return self.renew(program, oracle);
        }
        let step = self.finish(program, oracle, random)?;
        if step != Step::Nothing {
            return Ok(step);
        }
        if random.below(16) == 0 && !self.begun.is_empty() {
            return self.fence(program, oracle);
        }
        match oracle.next(WINDOW).filter(|_| turn.is_due) {
            Some(number) if random.below(24) == 0 => {
                self.trespass(program, number)?;
                Ok(Step::Moved)
            }
            Some(number) => self.begin(program, oracle, random, number),
            None => Ok(Step::Nothing),
        }
    }

    fn is_done(&self, oracle: &Oracle<'_>) -> bool {
        oracle.is_ended() || oracle.is_sent() && self.begun.is_empty()
    }

    fn close(mut self: Box<Self>, program: &Program, _: &Oracle<'_>) -> Result<(), String> {
        self.initiator = None;
        program.session().poll();
        Ok(())
    }
}
