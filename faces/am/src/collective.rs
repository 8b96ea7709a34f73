//! Collective operations of a job: each process contributes bytes to process 0, which gives all of
//! them the whole, in order.
//!
//! They go between endpoints of their own, in the bundle of the program, so its handlers run
//! meanwhile. Arriving is a request whose reply is deferred until all have arrived: so a process
//! whose process 0 is gone hears of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use hamlyn::Wait;
use hamlyn_am::{
    Call, CallError, Deferred, Endpoint, Error, Name, Node, Outcome, Tag, Translation,
};
use hamlyn_job::Job;

use crate::status::{Code, Failure};

const CONTRIBUTE: u8 = 1;
const ARRIVE: u8 = 2;
const RESULT: u8 = 3;
const RELEASE: u8 = 4;

/// Bytes of a part of a contribution or a result.
const PART_BYTES: usize = 4096;
/// Bytes of all contributions of an operation, which process 0 holds.
const WHOLE_BYTES_MAX: u64 = 1 << 31;
/// Between two looks for processes that are gone.
const LOOK: Wait = Wait::millis(100);

const GOOD: u32 = 0;
const DIFFERENT: u32 = 1;
const FAILED: u32 = 2;

/// The kind of an operation. All processes call the same ones, in the same order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Start = 1,
    Barrier = 2,
    AllGather = 3,
    Broadcast = 4,
    Exit = 5,
}

/// One process's part of an operation, at process 0.
#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    /// Bytes that have come: parts come in any order.
    came: u64,
    arrived: Option<Arrived>,
}

struct Arrived {
    request: Deferred,
    what: [u32; 3],
    length_bytes: u64,
}

impl Part {
    fn is_whole(&self) -> bool {
        let arrived = self.arrived.as_ref();
        arrived.is_some_and(|arrived| arrived.length_bytes == self.came)
    }
}

/// The part of it that handlers change.
#[derive(Default)]
struct State {
    /// The operation that this process is in, or in next.
    turn: Cell<u32>,
    /// Process 0: of this operation and of the next one, by process.
    parts: RefCell<[Vec<Part>; 2]>,
    /// The others: the whole, and the number of bytes of it that have come.
    whole: RefCell<Vec<u8>>,
    came: Cell<u64>,
    /// The whole's length and the verdict, once the release has come.
    released: Cell<Option<(u64, u32)>>,
    failed: Cell<bool>,
}

/// A process's end of the collective operations of its job.
pub(crate) struct Collective {
    endpoint: Endpoint,
    state: Rc<State>,
    job: Job,
    /// Process 0 of the others; or all others, by number.
    to: RefCell<Vec<Option<Translation>>>,
}

fn parts_of(procs: usize) -> Vec<Part> {
    std::iter::repeat_with(Part::default).take(procs).collect()
}

const REFUSED: CallError = CallError::Failed("a part of a collective operation that cannot be");

impl Collective {
    /// Makes the endpoint. Process 0 publishes it under `item`.
    pub(crate) fn new(
        node: &Node,
        bundle: &hamlyn_am::Bundle,
        job: &Job,
        item: &str,
    ) -> Result<Self, Failure> {
        let mut endpoint = bundle.endpoint()?;
        endpoint.set_tag(Tag::Any)?;
        let state = Rc::new(State::default());
        let procs = job.procs as usize;
        if job.proc == 0 {
            *state.parts.borrow_mut() = [parts_of(procs), parts_of(procs)];
            let own = state.clone();
            endpoint.on_medium(CONTRIBUTE, move |_, data, words| {
                own.contribute(data, words)
            })?;
            let own = state.clone();
            endpoint.on_short(ARRIVE, move |call, words| own.arrive(call, words))?;
        } else {
            let own = state.clone();
            endpoint.on_medium(RESULT, move |_, data, words| own.result(data, words))?;
            let own = state.clone();
            endpoint.on_short(RELEASE, move |_, words| own.release(words))?;
        }
        let own = state.clone();
        endpoint.on_returned(move |_| own.failed.set(true))?;
        if job.proc == 0 {
            node.publish(item, &endpoint.name()?)?;
        }
        Ok(Self {
            endpoint,
            state,
            job: job.clone(),
            to: RefCell::new(vec![None; procs]),
        })
    }

    /// Its name, for process 0.
    pub(crate) fn name(&self) -> Result<Name, Failure> {
        Ok(self.endpoint.name()?)
    }

    /// Maps the endpoint of another process.
    pub(crate) fn map(&self, proc: usize, name: &Name, wait: Wait) -> Result<(), Failure> {
        let mapped = self.endpoint.map(name, Tag::Any, wait)?;
        if let Some(place) = self.to.borrow_mut().get_mut(proc) {
            *place = Some(mapped);
        }
        Ok(())
    }

    fn mapped(&self, proc: usize) -> Option<Translation> {
        self.to.borrow().get(proc).copied().flatten()
    }

    fn over(&self, proc: usize) -> Result<Translation, Failure> {
        let mapped = self.mapped(proc);
        mapped.ok_or(Failure::resource("the job has no such process"))
    }

    /// Contributes bytes, and gives those of all, in the order of the processes. `serve` runs
    /// handlers for a while; `gathered` is told the whole by process 0, before it tells the
    /// others.
    pub(crate) fn run(
        &self,
        kind: Kind,
        what: [u32; 2],
        own: &[u8],
        patience: Option<Duration>,
        serve: &dyn Fn(Wait) -> Result<(), Failure>,
        gathered: &dyn Fn(&[u8]) -> Result<(), Failure>,
    ) -> Result<Vec<u8>, Failure> {
        let what = [kind as u32, what[0], what[1]];
        let until = patience.map(|patience| Instant::now() + patience);
        let result = match self.job.proc {
            _ if self.job.procs == 1 => gathered(own).map(|()| own.to_vec()),
            0 => self.gather(what, own, until, serve, gathered),
            _ => self.take_part(what, own, until, serve),
        };
        self.state.turn.set(self.state.turn.get().wrapping_add(1));
        result
    }

    /// Process 0.
    fn gather(
        &self,
        what: [u32; 3],
        own: &[u8],
        until: Option<Instant>,
        serve: &dyn Fn(Wait) -> Result<(), Failure>,
        gathered: &dyn Fn(&[u8]) -> Result<(), Failure>,
    ) -> Result<Vec<u8>, Failure> {
        let waited = self.wait_for_parts(until, serve);
        let parts = self.next_parts();
        let is_one = parts.iter().skip(1).all(|part| {
            let arrived = part.arrived.as_ref();
            arrived.is_none_or(|arrived| arrived.what == what)
        });
        let mut whole = own.to_vec();
        for part in &parts {
            whole.extend_from_slice(&part.bytes);
        }
        let (ended, verdict) = match waited {
            Ok(()) if !is_one => (Err(DIFFER), DIFFERENT),
            waited => match waited.and_then(|()| gathered(&whole)) {
                Ok(()) => (Ok(()), GOOD),
                failed => (failed, FAILED),
            },
        };
        let told = self.tell(parts, &whole, verdict);
        ended.and(told).map(|()| whole)
    }

    /// Process 0 waits until the parts of all others are whole.
    fn wait_for_parts(
        &self,
        until: Option<Instant>,
        serve: &dyn Fn(Wait) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut first_missing = 1;
        loop {
            let whole = {
                let parts = &self.state.parts.borrow()[0];
                let rest = parts.iter().skip(first_missing);
                rest.take_while(|part| part.is_whole()).count()
            };
            first_missing += whole;
            if first_missing >= self.job.procs as usize {
                return Ok(());
            }
            self.look_for(first_missing, until)?;
            serve(LOOK)?;
        }
    }

    /// The parts of this operation; those of the next one take their place.
    fn next_parts(&self) -> Vec<Part> {
        let fresh = parts_of(self.job.procs as usize);
        let [now, next] = &mut *self.state.parts.borrow_mut();
        std::mem::replace(now, std::mem::replace(next, fresh))
    }

    /// Process 0 tells the others. The first error, when all were told.
    fn tell(&self, parts: Vec<Part>, whole: &[u8], verdict: u32) -> Result<(), Failure> {
        let turn = self.state.turn.get();
        let mut result = Ok(());
        // Those that are released may begin the next operation.
        self.state.turn.set(turn.wrapping_add(1));
        for (proc, part) in parts.into_iter().enumerate() {
            let Some(arrived) = part.arrived else {
                continue;
            };
            let mut told = Ok(());
            if verdict == GOOD {
                told = self.send(proc, RESULT, turn, whole);
            }
            let length = whole.len() as u64;
            let words = [turn, verdict, length as u32, (length >> 32) as u32];
            let released = self.endpoint.reply(arrived.request, RELEASE, &words);
            result = result.and(told).and(released.map_err(Failure::from));
        }
        self.state.turn.set(turn);
        result
    }

    /// Sends bytes in parts.
    fn send(&self, proc: usize, handler: u8, turn: u32, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        let over = self.over(proc)?;
        // Between hosts a message is shorter.
        let most = self.endpoint.medium_bytes_max(&over)?.clamp(1, PART_BYTES);
        for (number, part) in bytes.chunks(most).enumerate() {
            let words = [turn, self.job.proc, (number * most) as u32];
            let sent = self
                .endpoint
                .request_medium(&over, handler, part, &words, Wait::Forever);
            sent.map_err(|error| self.of_send(proc, error))?;
        }
        Ok(())
    }

    /// The other processes.
    fn take_part(
        &self,
        what: [u32; 3],
        own: &[u8],
        until: Option<Instant>,
        serve: &dyn Fn(Wait) -> Result<(), Failure>,
    ) -> Result<Vec<u8>, Failure> {
        let state = &self.state;
        let turn = state.turn.get();
        let over = self.over(0)?;
        self.send(0, CONTRIBUTE, turn, own)?;
        let length = own.len() as u64;
        let words = [
            turn,
            self.job.proc,
            what[0],
            what[1],
            what[2],
            length as u32,
            (length >> 32) as u32,
        ];
        let sent = self.endpoint.request(&over, ARRIVE, &words, Wait::Forever);
        sent.map_err(|error| self.of_send(0, error))?;
        let verdict = loop {
            if let Some(verdict) = state.verdict() {
                break verdict;
            }
            let looked = self.look_for(0, until);
            serve(LOOK)?;
            // Process 0 may have told, and left.
            if state.verdict().is_none() {
                looked?;
            }
        };
        state.released.set(None);
        state.came.set(0);
        let whole = state.whole.take();
        match verdict {
            GOOD => Ok(whole),
            DIFFERENT => Err(DIFFER),
            _ => Err(Failure::resource(
                "process 0 could not complete the operation: its own error says why",
            )),
        }
    }

    /// The error for a process that is gone. A launcher that takes the first one that fails for the
    /// cause hears of that one first.
    fn gone(&self, proc: usize, why: &str) -> Failure {
        if self.job.is_of_foreign_launcher {
            std::thread::sleep(hamlyn_job::CAUSE_WITHIN);
        }
        let text = format!("process {proc} is gone ({why}): the operation cannot be completed");
        Failure::of(Code::Resource, &text)
    }

    /// The error of a message to a process.
    fn of_send(&self, proc: usize, error: Error) -> Failure {
        match error {
            Error::PeerLost(lost) => self.gone(proc, &lost.end.to_string()),
            error => error.into(),
        }
    }

    /// Fails if the time is over, or the process that is waited for is gone.
    fn look_for(&self, proc: usize, until: Option<Instant>) -> Result<(), Failure> {
        let end = match self.mapped(proc) {
            Some(over) => self.endpoint.link_end(&over)?.map(|end| end.to_string()),
            None => None,
        };
        let is_gone = self.job.proc != 0 && self.state.failed.get();
        if end.is_some() || is_gone {
            let why = end.unwrap_or_else(|| "a message to it came back".to_owned());
            return Err(self.gone(proc, &why));
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            let text = format!(
                "process {proc} did not come in time: see what it waits for; HAMLYN_BARRIER_TIMEOUT sets another time, \
                 and HAMLYN_START_TIMEOUT that of the start"
            );
            return Err(Failure::of(Code::Resource, &text));
        }
        Ok(())
    }
}

const DIFFER: Failure = Failure::resource(
    "the processes called different operations, or with different lengths: all call the same ones, in the same order",
);

fn word(words: &[u32], at: usize) -> u32 {
    words.get(at).copied().unwrap_or(0)
}

fn long_word(words: &[u32], at: usize) -> u64 {
    u64::from(word(words, at)) | u64::from(word(words, at + 1)) << 32
}

impl State {
    /// The verdict, once it has come, with all of the whole if it is good.
    fn verdict(&self) -> Option<u32> {
        let (length, verdict) = self.released.get()?;
        (verdict != GOOD || self.came.get() >= length).then_some(verdict)
    }

    /// Process 0 takes a message of this operation or the next one.
    fn with_part(
        &self,
        words: &[u32],
        act: impl FnOnce(&mut Part) -> Result<(), CallError>,
    ) -> Outcome {
        let turn = word(words, 0).wrapping_sub(self.turn.get()) as usize;
        let proc = word(words, 1) as usize;
        let mut parts = self.parts.borrow_mut();
        let part = parts.get_mut(turn).and_then(|parts| parts.get_mut(proc));
        act(part.filter(|_| proc > 0).ok_or(REFUSED)?)
    }

    fn contribute(&self, data: &[u8], words: &[u32]) -> Outcome {
        self.with_part(words, |part| {
            place(&mut part.bytes, word(words, 2), data)?;
            part.came += data.len() as u64;
            Ok(())
        })
    }

    fn arrive(&self, call: &mut Call<'_>, words: &[u32]) -> Outcome {
        self.with_part(words, |part| {
            if part.arrived.is_some() {
                return Err(REFUSED);
            }
            part.arrived = Some(Arrived {
                request: call.defer()?,
                what: [word(words, 2), word(words, 3), word(words, 4)],
                length_bytes: long_word(words, 5),
            });
            Ok(())
        })
    }

    /// The others take a part of the whole.
    fn result(&self, data: &[u8], words: &[u32]) -> Outcome {
        if word(words, 0) != self.turn.get() {
            return Err(REFUSED);
        }
        place(&mut self.whole.borrow_mut(), word(words, 2), data)?;
        self.came.set(self.came.get() + data.len() as u64);
        Ok(())
    }

    fn release(&self, words: &[u32]) -> Outcome {
        if word(words, 0) != self.turn.get() {
            return Err(REFUSED);
        }
        self.released
            .set(Some((long_word(words, 2), word(words, 1))));
        Ok(())
    }
}

/// Puts a part in its place.
fn place(whole: &mut Vec<u8>, begin: u32, data: &[u8]) -> Result<(), CallError> {
    let begin = u64::from(begin);
    let end = begin + data.len() as u64;
    if end > WHOLE_BYTES_MAX || data.len() > PART_BYTES {
        return Err(REFUSED);
    }
    if (whole.len() as u64) < end {
        whole.resize(end as usize, 0);
    }
    whole[begin as usize..end as usize].copy_from_slice(data);
    Ok(())
}
