//! Groups: the receiver divides its place among the senders, they may delegate a part of theirs,
//! and all of it is announced once (Hamlyn 2.5).

use std::collections::VecDeque;

use hamlyn::engine::counting::Counting;
use hamlyn::group::{MEMBER_BYTES, Member, Receiver, Sender};
use hamlyn::{ReceiveError, Wait};

use super::{FlowReceiver, FlowSender, Program, Sent, Step, Turn, outcome, wrong};
use crate::host::SimHost;
use crate::random::Random;
use crate::scenario::history::{End, Oracle};
use crate::scenario::plan::Kind;

/// Parts of a round at first.
const PARTS: u64 = 5;
/// Longer parts wait for room; others are sent when there is some.
const SHORT_BYTES: usize = 128;

/// A part of a round, as senders tell each other of it.
struct MemberReport {
    number: u64,
    /// Who sends it: which of the flow's senders.
    whose: usize,
    offset: usize,
    length: usize,
    member: Member,
}

impl MemberReport {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let numbers = [self.whose, self.offset, self.length].map(|number| number as u64);
        for number in [[self.number].as_slice(), &numbers].concat() {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.member.to_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (numbers, member) = bytes.split_at(bytes.len() - MEMBER_BYTES);
        let numbers: Vec<u64> = numbers
            .chunks_exact(8)
            .filter_map(|bytes| bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)))
            .collect();
        let [number, whose, offset, length] = numbers[..] else {
            return Err("a part is cut".to_owned());
        };
        Ok(Self {
            number,
            whose: whose as usize,
            offset: offset as usize,
            length: length as usize,
            member: Member::from_bytes(member).map_err(wrong("a member"))?,
        })
    }
}

/// A group, one round after the other.
pub(super) struct GroupReceiver {
    receiver: Receiver<SimHost>,
    random: Random,
    round: Option<u64>,
}

impl GroupReceiver {
    pub(super) fn open(program: &Program, oracle: &Oracle<'_>) -> Result<Self, String> {
        let counting = match oracle.flow % 2 {
            0 => Counting::Bits64,
            _ => Counting::Bits32,
        };
        let receiver = Receiver::new(program, Kind::Group.longest_bytes(), counting);
        Ok(Self {
            receiver: receiver.map_err(wrong("opening"))?,
            random: Random::new(oracle.seed()),
            round: None,
        })
    }

    fn begin(&mut self, oracle: &Oracle<'_>, number: u64) -> Result<(), String> {
        let whole = self.receiver.begin();
        let whole = whole.map_err(wrong("beginning a round"))?;
        let data = oracle.content(number);
        let mut lengths = Vec::new();
        let mut left = data.len() as u64;
        for _ in 1..1 + self.random.below(PARTS) {
            let length = self.random.below(left + 1);
            lengths.push(length);
            left -= length;
        }
        lengths.push(left);
        let members = whole.divide(&lengths).map_err(wrong("dividing"))?;
        oracle.sending(&data);
        let mut offset = 0;
        for (member, length) in members.into_iter().zip(lengths) {
            let part = MemberReport {
                number,
                whose: self.random.below(1 + oracle.known().with.len() as u64) as usize,
                offset,
                length: length as usize,
                member,
            };
            oracle.tell(End::Sender, part.to_bytes());
            offset += length as usize;
        }
        self.round = Some(number);
        Ok(())
    }
}

impl FlowReceiver for GroupReceiver {
    fn seed(&self, _: &Program) -> Result<Vec<u8>, String> {
        // Members are told when their round begins.
        Ok(vec![0])
    }

    fn look(&mut self, program: &Program, oracle: &Oracle<'_>, wait: Wait) -> Result<bool, String> {
        let Some(number) = self.round else {
            let Some(number) = oracle.next(1).filter(|_| !oracle.is_old()) else {
                program.session().poll();
                return Ok(false);
            };
            self.begin(oracle, number)?;
            return Ok(true);
        };
        let bytes = match self.receiver.recv(wait) {
            Ok(Some(bytes)) => bytes,
            Ok(None) | Err(ReceiveError::PeerLost(_)) => return Ok(false),
            Err(error) => return Err(wrong("receiving a group")(error)),
        };
        let bytes = bytes.get(..oracle.length(number)).unwrap_or_default();
        oracle.came(number, bytes);
        self.round = None;
        Ok(true)
    }

    fn close(self: Box<Self>, _: &Program, _: &Oracle<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// What is still to be sent of a part.
struct Job {
    sender: Sender<SimHost>,
    data: Vec<u8>,
    sent: usize,
    left: VecDeque<usize>,
}

/// Where a group begins, or one of its places.
#[derive(Default)]
pub(super) struct GroupSender {
    heard: usize,
    jobs: VecDeque<Job>,
}

impl GroupSender {
    /// Takes on a part, or some of it.
    fn take_on(
        &mut self,
        program: &Program,
        oracle: &Oracle<'_>,
        mut part: MemberReport,
        turn: &mut Turn<'_>,
    ) -> Result<Step, String> {
        let senders = 1 + oracle.known().with.len();
        if part.length > 1 && turn.random.below(3) == 0 {
            // A delegate does the rest.
            let kept = turn.random.below(part.length as u64) as usize;
            let lengths = [kept as u64, (part.length - kept) as u64];
            let halves = part.member.divide(&lengths).map_err(wrong("delegating"))?;
            let delegated = MemberReport {
                whose: (part.whose + 1) % senders,
                offset: part.offset + kept,
                length: part.length - kept,
                member: halves[1],
                ..part
            };
            oracle.tell(End::Sender, delegated.to_bytes());
            (part.length, part.member) = (kept, halves[0]);
        }
        let Ok(sender) = Sender::grow(program, &part.member, Wait::Forever) else {
            return Ok(Step::Lost);
        };
        let mut left = VecDeque::new();
        let mut rest = part.length;
        for _ in 0..turn.random.below(3) {
            let length = turn.random.below(rest as u64 + 1) as usize;
            left.push_back(length);
            rest -= length;
        }
        left.push_back(rest);
        let data = oracle.content(part.number);
        let data = data.get(part.offset..part.offset + part.length);
        self.jobs.push_back(Job {
            sender,
            data: data.ok_or("a part that is not of its message")?.to_vec(),
            sent: 0,
            left,
        });
        Ok(Step::Moved)
    }
}

impl FlowSender for GroupSender {
    fn step(&mut self, program: &Program, mut turn: Turn<'_>) -> Result<Step, String> {
        let oracle = turn.oracle;
        if let Some(told) = oracle.told(End::Sender, self.heard) {
            self.heard += 1;
            let part = MemberReport::from_bytes(&told)?;
            let senders = [[oracle.known().from].as_slice(), &oracle.known().with].concat();
            // A process may be several of them, with one end.
            let is_ours = senders.get(part.whose) == Some(&turn.process);
            return match is_ours {
                true => self.take_on(program, oracle, part, &mut turn),
                false => Ok(Step::Moved),
            };
        }
        let Some(job) = self.jobs.front_mut() else {
            return Ok(Step::Nothing);
        };
        let length = job.left.front().copied().unwrap_or_default();
        let data = &job.data[job.sent..job.sent + length];
        let wait = match length {
            0..=SHORT_BYTES => Wait::Poll,
            _ => Wait::Forever,
        };
        let at = job.sent as u64;
        let sent = match job.left.len() {
            1 => job.sender.send_last(at, data, wait),
            _ => job.sender.send(at, data, wait),
        };
        match outcome(sent)? {
            Sent::Yes(_) => {}
            other => return Ok(other.step()),
        }
        job.sent += length;
        job.left.pop_front();
        if job.left.is_empty() {
            self.jobs.pop_front();
        }
        Ok(Step::Moved)
    }

    fn is_done(&self, oracle: &Oracle<'_>) -> bool {
        // Until all has come, somebody may delegate a part.
        oracle.is_through()
    }
}
