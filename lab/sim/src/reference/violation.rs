//! What was seen and must not be.

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::metadata::Permission;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::packet::{Header, PortName, SlotName};
use hamlyn_engine::port::Arrived;
use hamlyn_engine::receive::Received;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::terminus::Completion;

/// A promise was broken. Says what was expected and what was found.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Memory is not what it must be.
    #[error("area {area}, byte {offset}: {found:#04x}, but it must be {expected:#04x}")]
    Byte {
        /// Number of the area.
        area: usize,
        /// Where in it.
        offset: u64,
        /// What must be there.
        expected: u8,
        /// What is there.
        found: u8,
    },
    /// An area was looked at beyond its end, or it has another size.
    #[error("area {area} has no {length_bytes} bytes at {offset}")]
    NoSuchMemory {
        /// Number of the area.
        area: usize,
        /// Where it was looked at.
        offset: u64,
        /// How much of it.
        length_bytes: u64,
    },
    /// A packet was let in, or refused, wrongly.
    #[error("{found:?}, but it must be {expected:?}: {header:?}")]
    Reception {
        /// Of the packet.
        header: Header,
        /// What had to become of it.
        expected: Result<Received, Refusal>,
        /// What did.
        found: Result<Received, Refusal>,
    },
    /// A one-shot entry completed the wrong bytes, or at the wrong time.
    #[error("the area was told that {found:?} is complete, but it must be {expected:?}")]
    Completed {
        /// Area, first byte, and first byte after.
        expected: Option<(usize, u64, u64)>,
        /// The same.
        found: Option<(usize, u64, u64)>,
    },
    /// An entry is not what it must be.
    #[error(
        "entry {index} of metadata area {entries}: its {what} is {found}, but must be {expected}"
    )]
    Entry {
        /// Number of the metadata area.
        entries: usize,
        /// Which of its entries.
        index: u16,
        /// Which field.
        what: &'static str,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A message came out of a port that was not due, or with other bytes.
    #[error("{port} gave {found:?}, but it must give {expected:?} with its own bytes")]
    Message {
        /// The port.
        port: PortName,
        /// What was due.
        expected: Option<Arrived>,
        /// What came.
        found: Arrived,
    },
    /// A notification came that was not due, another one, or none though one was due.
    #[error("queue {queue} gave {found:?}, but it must give {expected:?}")]
    Notified {
        /// Number of the queue.
        queue: usize,
        /// What was due; in the error so many that were lost.
        expected: Result<Option<Notification>, u64>,
        /// What came.
        found: Result<Option<Notification>, u64>,
    },
    /// A counter is wrong.
    #[error("{what}: {found}, but it must be {expected}")]
    Count {
        /// What is counted.
        what: String,
        /// How much it must be.
        expected: u64,
        /// How much it is.
        found: u64,
    },
    /// A slot name was given twice.
    #[error("{0} was given twice")]
    NameReused(SlotName),
    /// The engine says that there is such a slot, or none, wrongly.
    #[error("{name} is open: {found}, but it must be {expected}")]
    Open {
        /// The slot.
        name: SlotName,
        /// Whether it must be.
        expected: bool,
        /// Whether it is said to be.
        found: bool,
    },
    /// A packet left that no message explains.
    #[error("a packet left that is {why}: {header:?}")]
    Departed {
        /// What is wrong with it.
        why: &'static str,
        /// Its header.
        header: Header,
        /// Over which link.
        link: LinkId,
    },
    /// A message was taken that there was no room for, or numbered wrongly.
    #[error("terminus {terminus} took a message: {what} {found}, but it must be {expected}")]
    Posted {
        /// Number of the terminus.
        terminus: usize,
        /// What about it.
        what: &'static str,
        /// What it must be; for lengths, at most.
        expected: u64,
        /// What it is.
        found: u64,
    },
    /// A message completed too early, too late, or otherwise than it should.
    #[error("message {sequence} of terminus {terminus} is {found:?}, but must be {expected:?}")]
    Completion {
        /// Number of the terminus.
        terminus: usize,
        /// Sequence number of the message.
        sequence: u64,
        /// What it must be.
        expected: Completion,
        /// What is said.
        found: Completion,
    },
    /// Parts of a share do not make it up.
    #[error("the parts of a share count {found} packets, but must count {expected}")]
    Divided {
        /// The share.
        expected: u128,
        /// The sum of its parts.
        found: u128,
    },
    /// An entry's permission was changed by somebody else.
    #[error("an entry permits {found:?}, but must permit {expected:?}")]
    Permits {
        /// What it must permit.
        expected: Permission,
        /// What it does.
        found: Option<Permission>,
    },
    /// A call failed that must not.
    #[error("{call} failed: {error}")]
    Failed {
        /// What was called.
        call: &'static str,
        /// What it said.
        error: String,
    },
    /// Something is still to come though nothing is under way.
    #[error("nothing is under way, yet {0}")]
    Unfinished(String),
    /// A message was delivered that was not sent, or not in its turn, or twice.
    #[error("channel {channel} delivered {length_bytes} bytes that are {why}")]
    Delivered {
        /// Number of the channel.
        channel: usize,
        /// How long it is.
        length_bytes: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A call of a service came, or ended, otherwise than it must.
    #[error("call {number} {why}")]
    Call {
        /// Its number.
        number: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A one-sided operation had another effect than it must, or none when it is complete.
    #[error("operation {number} {why}")]
    Operation {
        /// Its number.
        number: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A message of a publisher was read otherwise than it was published.
    #[error("message {number} {why}")]
    Publication {
        /// Its number.
        number: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A message to a mailbox came or was refused otherwise than it must.
    #[error("a message of {length_bytes} bytes of process {sender} {why}")]
    Mail {
        /// Number of the process that sent it; the highest number if it is not known.
        sender: usize,
        /// How long it is.
        length_bytes: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The transport between nodes did what it must not.
    #[error("end {end} of an association: {what}")]
    Transport {
        /// Number of the end.
        end: u32,
        /// What is wrong.
        what: String,
    },
}
