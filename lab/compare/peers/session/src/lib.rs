//! A Rust peer program's side of the comparison: where it runs, what it is ordered to do, what it
//! answers. The protocol is described in `lab/compare/README.md`; `peers/harness` is the same in C.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// What fresh buffers walk through: several times the last cache.
pub const REGION_BYTES: usize = 128 << 20;
/// The largest message.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// How many readers a loaned message may have.
pub const LOAN_READERS: [usize; 2] = [1, 7];
/// The longest loaned message.
pub const LOAN_BYTES_MAX: usize = 4 << 20;
/// Loaned messages that a reader may have waiting for it, and such that there are in all.
pub const LOAN_DEPTH: u16 = 16;
/// One is written meanwhile.
pub const LOAN_CHUNKS: u32 = LOAN_DEPTH as u32 + 2;
/// The role that receives; the others send.
pub const RECEIVER: usize = 0;
const SENDERS_MAX: usize = 64;
const OPENING_MAX: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_micros(500);
/// A stamp is the sender's number above this bit, and the message's below.
const SENDER_SHIFT: u32 = 48;

/// The load of an active message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Category {
    /// Arguments of 32 bits.
    Short,
    /// Data for the handler.
    Medium,
    /// Data for a place that the sender names.
    Long,
}

/// Arguments that an active message may have.
pub const ARGUMENTS_MAX: usize = 16;

/// An order: round trips, or a stream from some senders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// Round trips, rather than a stream.
    pub is_latency: bool,
    /// Bytes of a message; of a short active message, its arguments.
    pub size_bytes: usize,
    /// Messages of each sender.
    pub count: u64,
    /// Senders that take part: 1 to this.
    pub senders: usize,
    /// Whether each message has buffers that were not used lately.
    pub is_fresh: bool,
    /// Readers of each loaned message; 0 if messages are not loaned.
    pub readers: usize,
    /// Of active messages: requests, and in round trips replies, of that category.
    pub category: Option<Category>,
}

impl Order {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (is_latency, is_loan) = match words.next()? {
            "latency" => (true, false),
            "stream" => (false, false),
            "loan" => (false, true),
            _ => return None,
        };
        let size_bytes = words.next()?.parse().ok()?;
        let count = words.next()?.parse().ok()?;
        let others: usize = words.next()?.parse().ok()?;
        if others == 0 {
            return None;
        }
        let (senders, readers) = if is_loan { (1, others) } else { (others, 0) };
        let how = words.next()?;
        let category = match how {
            "short" => Some(Category::Short),
            "medium" => Some(Category::Medium),
            "long" => Some(Category::Long),
            _ => None,
        };
        let order = Self {
            is_latency,
            size_bytes,
            count,
            senders,
            is_fresh: how == "fresh",
            readers,
            category,
        };
        let sizes = match category {
            Some(Category::Short) => 0..=ARGUMENTS_MAX,
            _ => 8..=MESSAGE_BYTES_MAX,
        };
        let possible = sizes.contains(&order.size_bytes)
            && order.count > 0
            && order.senders.max(order.readers) <= SENDERS_MAX;
        possible.then_some(order)
    }
}

/// The first and the last word of a message, which carry its number and its sender's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// First word.
    pub first: u64,
    /// Last word.
    pub last: u64,
}

impl Stamp {
    /// The stamp of a message of that sender.
    pub fn of(sender: usize, turn: u64) -> Self {
        let word = (sender as u64) << SENDER_SHIFT | turn;
        Self {
            first: word,
            last: word,
        }
    }

    /// Who says to have sent it.
    pub fn sender(self) -> usize {
        (self.first >> SENDER_SHIFT) as usize
    }

    /// Reads it off a message.
    pub fn read(message: &[u8]) -> Option<Self> {
        Some(Self {
            first: u64::from_le_bytes(*message.first_chunk()?),
            last: u64::from_le_bytes(*message.last_chunk()?),
        })
    }

    /// Puts it on a message of 8 bytes or more.
    pub fn write(self, message: &mut [u8]) {
        if let Some(word) = message.last_chunk_mut() {
            *word = self.last.to_le_bytes();
        }
        if let Some(word) = message.first_chunk_mut() {
            *word = self.first.to_le_bytes();
        }
    }
}

/// The result of an order of active messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acted {
    /// [`now_ns`] before the first message.
    pub begin_ns: u64,
    /// [`now_ns`] after the last one.
    pub end_ns: u64,
    /// Messages that were right.
    pub checked: u64,
}

/// What a peer does. One value is one process' end, whatever its role.
pub trait Peer {
    /// Makes ready for an order; or says why it cannot be done.
    fn prepare(&mut self, order: &Order) -> Result<Option<String>>;
    /// Sends a message: to the receiver, or, if this is the receiver, back to the sender.
    fn send(&mut self, message: &[u8]) -> Result<()>;
    /// Waits for a message, and reads its stamp where it lies.
    fn receive(&mut self) -> Result<Stamp>;
    /// All that was sent is on its way, and what is still to be exchanged for this order is.
    fn settle(&mut self) -> Result<()>;

    /// Loans a message, writes the first word of the stamp at its beginning and nothing else, and
    /// publishes it to all readers.
    fn lend(&mut self, _stamp: Stamp, _size_bytes: usize) -> Result<()> {
        bail!("no loans")
    }

    /// Waits for the next loaned message of that reader, reads the word at its beginning and
    /// nothing else, and gives it back.
    fn borrow(&mut self, _reader: usize) -> Result<u64> {
        bail!("no loans")
    }

    /// Carries out an order of active messages, which have loops of their own. The receiver says
    /// that it is `ready`.
    fn act(&mut self, _order: &Order, _ready: &mut dyn FnMut() -> Result<()>) -> Result<Acted> {
        bail!("no active messages")
    }

    /// How many messages of a stream one call takes. If more than one, streams go by the two calls
    /// below.
    fn many(&self) -> usize {
        1
    }

    /// Sends messages that lie one after the other, each of that size: at most [`Peer::many`].
    fn send_many(&mut self, messages: &[u8], size_bytes: usize) -> Result<()> {
        messages
            .chunks_exact(size_bytes)
            .try_for_each(|message| self.send(message))
    }

    /// Takes the messages that are there, so many at most, and reads their stamps. How many.
    fn receive_many(&mut self, most: u64, mut each: impl FnMut(Stamp)) -> Result<u64> {
        for _ in 0..most {
            each(self.receive()?);
        }
        Ok(most)
    }
}

/// What a process was started with, and its ends of the FIFOs.
pub struct Session {
    /// Which way to run.
    pub variant: String,
    /// Where files are exchanged.
    pub directory: PathBuf,
    /// 0 receives; the others send.
    pub role: usize,
    /// How many senders there are.
    pub senders: usize,
    orders: BufReader<File>,
    answers: File,
}

impl Session {
    /// From the arguments `VARIANT DIRECTORY ROLE SENDERS RECEIVER_CORE SENDER_CORE`. The process
    /// is on its core already; the cores are for programs with a launcher.
    pub fn open() -> Result<Self> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let [variant, directory, role, senders, _, _] = arguments.as_slice() else {
            bail!("usage: VARIANT DIRECTORY ROLE SENDERS RECEIVER_CORE SENDER_CORE");
        };
        // However the comparison ends, so do we.
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        let directory = PathBuf::from(directory);
        let (role, senders) = (role.parse()?, senders.parse()?);
        ensure!(
            role <= senders && (1..=SENDERS_MAX).contains(&senders),
            "no such role"
        );
        let answers = File::options()
            .write(true)
            .open(directory.join(format!("answers.{role}")))?;
        let orders = BufReader::new(File::open(directory.join(format!("orders.{role}")))?);
        Ok(Self {
            variant: variant.clone(),
            directory,
            role,
            senders,
            orders,
            answers,
        })
    }

    /// Leaves bytes where the other processes find them.
    pub fn publish(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.directory.join(name);
        let draft = self.directory.join(format!("{name}.draft"));
        std::fs::write(&draft, bytes).with_context(|| format!("publishing {name}"))?;
        std::fs::rename(&draft, &path).with_context(|| format!("publishing {name}"))
    }

    /// Waits for what another process leaves.
    pub fn awaited(&self, name: &str) -> Result<Vec<u8>> {
        awaited(&self.directory, name)
    }

    fn say(&mut self, line: &str) -> Result<()> {
        self.answers.write_all(format!("{line}\n").as_bytes())?;
        Ok(())
    }

    fn answer(&mut self, begin_ns: u64, end_ns: u64, checked: u64) -> Result<()> {
        self.say(&format!(
            "{{\"begin_ns\":{begin_ns},\"end_ns\":{end_ns},\"checked\":{checked}}}"
        ))
    }

    /// Opens the peer, then does as it is told until there are no more orders. Errors go to the
    /// program that gives the orders.
    pub fn run<P: Peer>(mut self, open: impl FnOnce(&Session) -> Result<P>) -> Result<()> {
        let result = self.serve(open);
        if let Err(error) = &result {
            let text = format!("{error:#}").replace(['"', '\\', '\n'], " ");
            self.say(&format!("{{\"error\":\"{text}\"}}"))?;
        }
        result
    }

    fn serve<P: Peer>(&mut self, open: impl FnOnce(&Session) -> Result<P>) -> Result<()> {
        let mut peer = open(self)?;
        let mut buffers = Vec::new();
        self.say("{\"open\":true}")?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.orders.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let Some(order) = Order::parse(&line) else {
                return Ok(());
            };
            if let Some(reason) = peer.prepare(&order)? {
                self.say(&format!("{{\"unsupported\":\"{reason}\"}}"))?;
                continue;
            }
            if order.category.is_some() {
                let acted = peer.act(&order, &mut || self.say("{\"ready\":true}"))?;
                self.answer(acted.begin_ns, acted.end_ns, acted.checked)?;
                continue;
            }
            if order.readers > 0 {
                if self.role == RECEIVER {
                    self.borrow(&mut peer, &order)?;
                } else {
                    self.lend(&mut peer, &order)?;
                }
                continue;
            }
            let needed = if order.is_fresh {
                REGION_BYTES
            } else if order.is_latency {
                order.size_bytes
            } else {
                order.size_bytes * peer.many()
            };
            if buffers.len() < needed {
                buffers = vec![1; needed];
            }
            let buffers = &mut buffers[..needed];
            match (order.is_latency, self.role == RECEIVER) {
                (true, true) => self.echo(&mut peer, &order, buffers)?,
                (true, false) => self.lead(&mut peer, &order, buffers)?,
                (false, true) => self.take(&mut peer, &order)?,
                (false, false) => self.give(&mut peer, &order, buffers)?,
            }
        }
    }

    fn lead<P: Peer>(&mut self, peer: &mut P, order: &Order, buffer: &mut [u8]) -> Result<()> {
        let mut checked = 0;
        let begin_ns = now_ns();
        for turn in 0..order.count {
            let stamp = Stamp::of(1, turn);
            stamp.write(buffer);
            peer.send(buffer)?;
            checked += u64::from(peer.receive()? == stamp);
        }
        let end_ns = now_ns();
        peer.settle()?;
        self.answer(begin_ns, end_ns, checked)
    }

    fn echo<P: Peer>(&mut self, peer: &mut P, order: &Order, buffer: &mut [u8]) -> Result<()> {
        self.say("{\"ready\":true}")?;
        let mut checked = 0;
        let begin_ns = now_ns();
        for turn in 0..order.count {
            let stamp = peer.receive()?;
            checked += u64::from(stamp == Stamp::of(1, turn));
            stamp.write(buffer);
            peer.send(buffer)?;
        }
        peer.settle()?;
        self.answer(begin_ns, now_ns(), checked)
    }

    fn give<P: Peer>(&mut self, peer: &mut P, order: &Order, buffers: &mut [u8]) -> Result<()> {
        let mut at = 0;
        let many = peer.many() as u64;
        let begin_ns = now_ns();
        if many > 1 {
            for first in (0..order.count).step_by(many as usize) {
                let turns = first..order.count.min(first + many);
                let bytes = (turns.end - first) as usize * order.size_bytes;
                let messages = &mut buffers[..bytes];
                for (turn, message) in turns.zip(messages.chunks_exact_mut(order.size_bytes)) {
                    Stamp::of(self.role, turn).write(message);
                }
                peer.send_many(messages, order.size_bytes)?;
            }
            peer.settle()?;
            return self.answer(begin_ns, now_ns(), order.count);
        }
        for turn in 0..order.count {
            let message = &mut buffers[at..at + order.size_bytes];
            Stamp::of(self.role, turn).write(message);
            peer.send(message)?;
            at += order.size_bytes;
            if at + order.size_bytes > buffers.len() {
                at = 0;
            }
        }
        peer.settle()?;
        self.answer(begin_ns, now_ns(), order.count)
    }

    fn lend<P: Peer>(&mut self, peer: &mut P, order: &Order) -> Result<()> {
        let begin_ns = now_ns();
        for turn in 0..order.count {
            peer.lend(Stamp::of(self.role, turn), order.size_bytes)?;
        }
        let end_ns = now_ns();
        peer.settle()?;
        self.answer(begin_ns, end_ns, order.count)
    }

    /// All readers are in this process, and take each message in turn. A message is right if all
    /// got it.
    fn borrow<P: Peer>(&mut self, peer: &mut P, order: &Order) -> Result<()> {
        self.say("{\"ready\":true}")?;
        let mut checked = 0;
        let begin_ns = now_ns();
        for turn in 0..order.count {
            let mut is_right = true;
            for reader in 0..order.readers {
                is_right &= peer.borrow(reader)? == Stamp::of(1, turn).first;
            }
            checked += u64::from(is_right);
        }
        let end_ns = now_ns();
        peer.settle()?;
        self.answer(begin_ns, end_ns, checked)
    }

    fn take<P: Peer>(&mut self, peer: &mut P, order: &Order) -> Result<()> {
        self.say("{\"ready\":true}")?;
        let mut expected = [0_u64; SENDERS_MAX + 1];
        let mut checked = 0;
        let mut check = |stamp: Stamp| {
            if let Some(turn) = expected.get_mut(stamp.sender()) {
                checked += u64::from(stamp == Stamp::of(stamp.sender(), *turn));
                *turn += 1;
            }
        };
        let total = order.count * order.senders as u64;
        let begin_ns = now_ns();
        if peer.many() > 1 {
            let mut taken = 0;
            while taken < total {
                taken += peer.receive_many(total - taken, &mut check)?;
            }
        } else {
            for _ in 0..total {
                check(peer.receive()?);
            }
        }
        let end_ns = now_ns();
        peer.settle()?;
        self.answer(begin_ns, end_ns, checked)
    }
}

/// The clock that all processes of the machine share.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn awaited(directory: &Path, name: &str) -> Result<Vec<u8>> {
    let path = directory.join(name);
    let deadline = Instant::now() + OPENING_MAX;
    loop {
        match std::fs::read(&path) {
            Ok(bytes) => return Ok(bytes),
            Err(error) if Instant::now() > deadline => {
                return Err(error).with_context(|| format!("nobody published {name}"));
            }
            // Not there yet.
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders() {
        let order = Order::parse("stream 4096 17 2 fresh\n").unwrap();
        assert_eq!(
            (order.size_bytes, order.count, order.senders),
            (4096, 17, 2)
        );
        assert!(order.is_fresh && !order.is_latency);
        assert!(Order::parse("latency 16 1 1 reused").unwrap().is_latency);
        assert_eq!(order.category, None);
        let short = Order::parse("latency 0 5 1 short").unwrap();
        assert_eq!(
            (short.size_bytes, short.category),
            (0, Some(Category::Short))
        );
        let long = Order::parse("stream 65536 5 1 long").unwrap();
        assert_eq!(long.category, Some(Category::Long));
        let loan = Order::parse("loan 65536 9 7 reused").unwrap();
        assert_eq!((loan.senders, loan.readers, loan.is_latency), (1, 7, false));
        for line in [
            "quit",
            "",
            "stream 7 1 1 fresh",
            "stream 8 0 1 fresh",
            "stream 8 1 0 fresh",
            "loan 8 1 0 reused",
            "loan 8 1 65 reused",
            "stream 8 1 1",
            "stream 17 1 1 short",
            "stream 7 1 1 medium",
        ] {
            assert_eq!(Order::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn stamps() {
        for size in [8, 16, 100] {
            let mut message = vec![0; size];
            let stamp = Stamp::of(3, 12345);
            stamp.write(&mut message);
            assert_eq!(Stamp::read(&message), Some(stamp));
            assert_eq!(stamp.sender(), 3);
            message[size - 1] ^= 1;
            assert_ne!(Stamp::read(&message), Some(stamp), "{size}");
        }
        assert_eq!(Stamp::read(&[0; 7]), None);
    }

    /// Takes four in a call, and gives three, of which the one with that number is wrong.
    #[derive(Default)]
    struct Batches {
        sent: Vec<Vec<u64>>,
        taken: u64,
        wrong: Option<u64>,
    }

    impl Peer for Batches {
        fn prepare(&mut self, _: &Order) -> Result<Option<String>> {
            Ok(None)
        }

        fn send(&mut self, _: &[u8]) -> Result<()> {
            bail!("one at a time")
        }

        fn receive(&mut self) -> Result<Stamp> {
            bail!("one at a time")
        }

        fn settle(&mut self) -> Result<()> {
            Ok(())
        }

        fn many(&self) -> usize {
            4
        }

        fn send_many(&mut self, messages: &[u8], size_bytes: usize) -> Result<()> {
            let stamps = messages
                .chunks_exact(size_bytes)
                .map(|message| Stamp::read(message).map_or(u64::MAX, |stamp| stamp.first));
            self.sent.push(stamps.collect());
            Ok(())
        }

        fn receive_many(&mut self, most: u64, mut each: impl FnMut(Stamp)) -> Result<u64> {
            let some = most.min(3);
            for turn in self.taken..self.taken + some {
                each(Stamp::of(1, turn + u64::from(self.wrong == Some(turn))));
            }
            self.taken += some;
            Ok(some)
        }
    }

    /// What that role answers to an order for ten messages.
    fn answer_of(role: usize, peer: &mut Batches) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = |name| directory.path().join(name);
        std::fs::write(path("orders"), "").unwrap();
        let mut session = Session {
            variant: String::new(),
            directory: directory.path().to_owned(),
            role,
            senders: 1,
            orders: BufReader::new(File::open(path("orders")).unwrap()),
            answers: File::create(path("answers")).unwrap(),
        };
        let order = Order::parse("stream 16 10 1 reused").unwrap();
        if role == RECEIVER {
            session.take(peer, &order).unwrap();
        } else {
            session.give(peer, &order, &mut [0; 4 * 16]).unwrap();
        }
        std::fs::read_to_string(path("answers")).unwrap()
    }

    #[test]
    fn many_in_a_call() {
        let mut peer = Batches::default();
        let answer = answer_of(1, &mut peer);
        assert!(answer.contains("\"checked\":10"), "{answer}");
        let lengths: Vec<usize> = peer.sent.iter().map(Vec::len).collect();
        assert_eq!(lengths, [4, 4, 2]);
        let wanted: Vec<u64> = (0..10).map(|turn| Stamp::of(1, turn).first).collect();
        assert_eq!(peer.sent.concat(), wanted);
        let answer = answer_of(RECEIVER, &mut Batches::default());
        assert!(answer.contains("\"checked\":10"), "{answer}");
        // The wrong one, alone, does not count.
        let answer = answer_of(
            RECEIVER,
            &mut Batches {
                wrong: Some(7),
                ..Batches::default()
            },
        );
        assert!(answer.contains("\"checked\":9"), "{answer}");
    }
}
