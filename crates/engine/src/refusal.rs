//! Why a packet was not let in, and how often.

use core::fmt;

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// Reason for which a packet was discarded (ARCHITECTURE.md gives their order). Every
        /// reason has a counter that the owner of the interface can read.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Refusal { $($(#[$doc])* $name,)* }

        impl Refusal {
            /// All reasons.
            pub const ALL: &'static [Refusal] = &[$(Refusal::$name,)*];
        }

        impl fmt::Display for Refusal {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Refusal::$name => $text,)* })
            }
        }
    };
}

refusals! {
    /// The host has not set up the interface yet (`Hamlyn 2.8`).
    NotSetUp = "the interface is not set up";
    /// The host's periodic handshake stopped (`Hamlyn 2.8`).
    HandshakeLapsed = "the host's handshake stopped";
    /// No slot of that number was ever opened.
    NoSuchSlot = "no such slot";
    /// The slot was closed, perhaps opened anew under another generation.
    SlotClosed = "the slot was closed";
    /// The slot was revoked.
    SlotRevoked = "the slot was revoked";
    /// The key is not the slot's.
    BadKey = "wrong key";
    /// The data would not lie within the slot.
    OutOfBounds = "outside the slot's bounds";
    /// The metadata index names no entry of the slot.
    NoMetadataEntry = "no such metadata entry";
    /// A fast-mode packet for a paranoid slot, which needs an entry.
    FastToParanoid = "fast mode to a paranoid slot";
    /// The data would not lie within the entry's limits.
    OutOfLimits = "outside the entry's limits";
    /// The key is not the entry's.
    BadEntryKey = "wrong key for the entry";
    /// The one-shot entry has had its message.
    EntrySpent = "the one-shot entry is spent";
    /// The slot does not grant this kind of access.
    NoRight = "the slot does not grant this";
    /// A kind of packet that this version does not know.
    UnknownKind = "unknown kind of packet";
    /// A flag that this version does not know.
    UnknownFlag = "unknown flag";
    /// More than 60 bytes of metadata, or metadata beside fast mode's word.
    BadMetadata = "metadata too long or not allowed";
    /// The place is in the application's hands.
    PlaceInUse = "the place is in use";
    /// The packet says that its data were placed, but its sender has no grant for all of that
    /// place.
    NotGranted = "placed without a grant";
    /// A request whose data or metadata are not those of its kind.
    BadRequest = "malformed request";
    /// An atomic operation that this version does not know.
    NoSuchOperation = "no such atomic operation";
    /// An atomic operation on a word that is not at a multiple of its width.
    Misaligned = "the word is not aligned to its width";
    /// More requests of one link than are answered at a time.
    TooManyRequests = "too many requests without answer";
    /// No port of that name is open.
    PortClosed = "the port was closed";
    /// The port is of another group than the message.
    WrongGroup = "the port is of another group";
    /// The port has no handler of that number.
    NoSuchHandler = "the port has no such handler";
    /// The port is parked: its owner keeps no memory ready for it.
    NotResident = "the port is not resident";
    /// The messages that wait at the port, together or those of this sender, leave no room.
    QueueFull = "the port's queue is full";
}

const COUNT: usize = Refusal::ALL.len();

/// A counter per reason.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refusals {
    counts: [u64; COUNT],
}

impl Default for Refusals {
    fn default() -> Self {
        Self { counts: [0; COUNT] }
    }
}

impl Refusals {
    /// How often packets were refused for `reason`.
    pub fn count(&self, reason: Refusal) -> u64 {
        self.counts[reason as usize]
    }

    /// How many packets were refused.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Refusal, u64)> + '_ {
        Refusal::ALL
            .iter()
            .map(|&reason| (reason, self.count(reason)))
            .filter(|&(_, count)| count > 0)
    }

    pub(crate) fn add(&mut self, reason: Refusal) {
        self.counts[reason as usize] = self.counts[reason as usize].saturating_add(1);
    }
}

impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
