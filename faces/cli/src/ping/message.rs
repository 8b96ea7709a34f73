//! What the two sides of a ping say to each other. All numbers are little endian.
//!
//! | message | bytes | |
//! |---|---|---|
//! | hello | 8 | version (4), bytes of a message (4); with a ticket for the answers |
//! | hello back | 16 | version (4), zeros (4), the clock of the answering side (8) |
//! | ask | 16 or more | number (8), then bytes that are to come back |
//! | answer | as many | number modulo 2^32 (4), how long it was held in ns (4), when it came in ns (8), then those bytes |

use std::os::unix::fs::MetadataExt;

use rustix::time::{ClockId, clock_gettime};

/// The version that this is.
const VERSION: u32 = 1;
/// The shortest message: both of its kinds fit.
pub(super) const SIZE_BYTES_MIN: u32 = 16;
/// The longest.
pub(super) const SIZE_BYTES_MAX: u32 = 65_536;

/// What tickets are offered as.
pub(super) const ITEM: &str = "ping";

/// Which clock a process reads: two that say the same on one host read the same clock. Nothing if
/// it is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Clock(Option<u64>);

impl Clock {
    /// The clock of this process: processes of one host may be in different namespaces of time.
    pub(super) fn own() -> Self {
        let namespace = std::fs::metadata("/proc/self/ns/time");
        Self(namespace.ok().map(|namespace| namespace.ino()))
    }

    /// Whether both are known to be the same, if both are of one host.
    pub(super) fn is_same(self, other: Self) -> bool {
        self.0.is_some() && self == other
    }

    /// What it says now, in nanoseconds.
    pub(super) fn now_ns() -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        (now.tv_sec as u64) * 1_000_000_000 + now.tv_nsec as u64
    }
}

/// See the module.
pub(super) fn hello(size_bytes: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&VERSION.to_le_bytes());
    bytes[4..].copy_from_slice(&size_bytes.to_le_bytes());
    bytes
}

/// Bytes of the messages that are to come; nothing if this is no hello.
pub(super) fn read_hello(bytes: &[u8]) -> Option<u32> {
    let (version, size) = bytes.split_first_chunk()?;
    let size_bytes = u32::from_le_bytes(size.try_into().ok()?);
    let is_allowed = (SIZE_BYTES_MIN..=SIZE_BYTES_MAX).contains(&size_bytes);
    (u32::from_le_bytes(*version) == VERSION && is_allowed).then_some(size_bytes)
}

/// See the module.
pub(super) fn hello_back(clock: Clock) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&VERSION.to_le_bytes());
    bytes[8..].copy_from_slice(&clock.0.unwrap_or(0).to_le_bytes());
    bytes
}

/// The clock of the answering side; nothing if this is no answer to a hello.
pub(super) fn read_hello_back(bytes: &[u8]) -> Option<Clock> {
    let (version, rest) = bytes.split_first_chunk()?;
    let clock = u64::from_le_bytes(*rest.split_first_chunk::<4>()?.1.first_chunk()?);
    let is_ours = u32::from_le_bytes(*version) == VERSION && bytes.len() == 16;
    is_ours.then_some(Clock((clock != 0).then_some(clock)))
}

/// Writes an ask.
pub(super) fn ask(number: u64, into: &mut [u8]) {
    for (byte, place) in into.iter_mut().zip(0_u64..) {
        *byte = (number.wrapping_mul(31) + place) as u8;
    }
    into[..8].copy_from_slice(&number.to_le_bytes());
}

/// Makes the answer of an ask, which came at that time.
pub(super) fn answer(ask: &[u8], came_ns: u64, into: &mut Vec<u8>) -> Option<()> {
    let number = u64::from_le_bytes(*ask.first_chunk()?);
    let rest = ask.get(16..)?;
    into.clear();
    into.extend_from_slice(&(number as u32).to_le_bytes());
    let held_ns = Clock::now_ns().saturating_sub(came_ns);
    let held_ns = u32::try_from(held_ns).unwrap_or(u32::MAX);
    into.extend_from_slice(&held_ns.to_le_bytes());
    into.extend_from_slice(&came_ns.to_le_bytes());
    into.extend_from_slice(rest);
    Some(())
}

/// An answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    /// The ask's number modulo 2^32.
    pub(super) number: u32,
    /// How long the answering side held it.
    pub(super) held_ns: u32,
    /// When the ask came there, by the clock of the answering side.
    pub(super) came_ns: u64,
}

impl Answer {
    /// Reads one to an ask of that length.
    pub(super) fn read(bytes: &[u8], ask_bytes: usize) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk()?;
        let (held, rest) = rest.split_first_chunk()?;
        let came = rest.first_chunk()?;
        (bytes.len() == ask_bytes).then_some(Self {
            number: u32::from_le_bytes(*number),
            held_ns: u32::from_le_bytes(*held),
            came_ns: u64::from_le_bytes(*came),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        assert_eq!(read_hello(&hello(64)), Some(64));
        let clock = Clock(Some(7));
        assert_eq!(read_hello_back(&hello_back(clock)), Some(clock));
        assert_eq!(read_hello_back(&hello_back(Clock(None))), Some(Clock(None)));
        assert!(clock.is_same(clock) && !Clock(None).is_same(Clock(None)));
        let mut asked = [0; 40];
        ask(1 << 32 | 5, &mut asked);
        let mut answered = Vec::new();
        answer(&asked, Clock::now_ns(), &mut answered).expect("an answer");
        let read = Answer::read(&answered, asked.len()).expect("an answer");
        assert_eq!(read.number, 5);
        assert_eq!(answered[16..], asked[16..]);
    }

    #[test]
    fn what_was_not_said_is_not_understood() {
        for hello in [
            &hello(15)[..],
            &hello(65_537),
            &hello(64)[..7],
            &[2, 0, 0, 0, 64, 0, 0, 0],
        ] {
            assert_eq!(read_hello(hello), None, "{hello:?}");
        }
        assert_eq!(read_hello_back(&[1; 16]), None);
        assert_eq!(read_hello_back(&hello_back(Clock(None))[..15]), None);
        assert_eq!(answer(&[0; 15], 0, &mut Vec::new()), None);
        assert_eq!(Answer::read(&[0; 16], 17), None);
        assert_eq!(Answer::read(&[0; 15], 15), None);
    }
}
