//! How long the datagrams of a link may be: each path is tried with probes, and frames are no
//! longer than the narrowest carries.
//!
//! A link begins with what every path carries, so that nothing waits for a probe; the first one has
//! the length that the system believes in, and mostly it passes. If frames are lost in a row, a
//! path may have become narrower, or just loses much: a probe of that length tells. If none passes,
//! frames are short from then on, and those that are long already may be cut to pieces on the way.

use crate::udp::DATAGRAM_BYTES_MIN;
use crate::udp::mtu::{MtuSettings, PathMtu};

/// Frames lost in a row that make long ones suspect.
const LOST_MAX: u32 = 8;
/// What a probe says before its padding: how long it is. The answer says the same.
pub(super) const PROBE_BYTES: usize = 2;

/// See the module.
pub(super) struct Probing {
    paths: Vec<PathMtu>,
    /// The lengths of probes that came and are to be answered, by path.
    owed: Vec<Option<u16>>,
    has_narrowed: bool,
}

/// The probe to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trial {
    /// A datagram of so many bytes, over that path.
    Probe(u8, usize),
    /// That one of so many bytes came, over that path.
    Answer(u8, u16),
}

impl Probing {
    /// For so many paths, and datagrams of at most so many bytes.
    pub(super) fn new(paths: usize, datagram_bytes: usize, now_ns: u64) -> Self {
        let settings = MtuSettings {
            ceiling_bytes: datagram_bytes,
            ..MtuSettings::default()
        };
        let mut path = PathMtu::new(settings, now_ns);
        path.route(now_ns, datagram_bytes);
        Self {
            paths: vec![path; paths],
            owed: vec![None; paths],
            has_narrowed: false,
        }
    }

    /// How long a datagram may be on every path, in bytes.
    pub(super) fn datagram_bytes(&self) -> usize {
        let paths = self.paths.iter().map(PathMtu::datagram_bytes);
        paths.min().unwrap_or(DATAGRAM_BYTES_MIN)
    }

    /// When [`Probing::next`] is to be called though nothing came.
    pub(super) fn deadline_ns(&self) -> u64 {
        if self.owed.iter().any(Option::is_some) {
            return 0;
        }
        let paths = self.paths.iter().map(PathMtu::deadline_ns);
        paths.min().unwrap_or(u64::MAX)
    }

    /// The next message to send, if any.
    pub(super) fn next(&mut self, now_ns: u64) -> Option<Trial> {
        for (path, owed) in (0..).zip(&mut self.owed) {
            if let Some(bytes) = owed.take() {
                return Some(Trial::Answer(path, bytes));
            }
        }
        let narrowest_bytes = self.datagram_bytes();
        let mut paths = (0..).zip(&mut self.paths);
        let probe = paths.find_map(|(path, mtu)| Some(Trial::Probe(path, mtu.poll(now_ns)?)));
        self.has_narrowed |= self.datagram_bytes() < narrowest_bytes;
        probe
    }

    /// A probe came, of so many bytes, that says this.
    pub(super) fn came(&mut self, path: u8, plain: &[u8], datagram_bytes: usize) {
        let said = plain.first_chunk().map(|said| u16::from_le_bytes(*said));
        if let Some(said) = said.filter(|said| usize::from(*said) == datagram_bytes)
            && let Some(owed) = self.owed.get_mut(usize::from(path))
        {
            *owed = Some(said);
        }
    }

    /// The answer to a probe came.
    pub(super) fn answered(&mut self, now_ns: u64, path: u8, plain: &[u8]) {
        if let Some(said) = plain.first_chunk()
            && let Some(mtu) = self.paths.get_mut(usize::from(path))
        {
            mtu.probe_arrived(now_ns, u16::from_le_bytes(*said).into());
        }
    }

    /// The system would not send a datagram of so many bytes over that path.
    pub(super) fn too_long(&mut self, now_ns: u64, path: u8, bytes: usize) {
        if let Some(mtu) = self.paths.get_mut(usize::from(path)) {
            let before_bytes = mtu.datagram_bytes();
            mtu.too_long(now_ns, bytes);
            self.has_narrowed |= mtu.datagram_bytes() < before_bytes;
        }
    }

    /// Of that path so many frames were lost in a row, in datagrams of at least so many bytes.
    pub(super) fn lost(&mut self, now_ns: u64, path: u8, frames: u32, least_bytes: usize) {
        if frames >= LOST_MAX
            && least_bytes > DATAGRAM_BYTES_MIN
            && let Some(mtu) = self.paths.get_mut(usize::from(path))
        {
            mtu.suspect(now_ns);
        }
    }

    /// A path has become narrower since the last call: longer datagrams may be fragmented.
    pub(super) fn has_narrowed(&mut self) -> bool {
        core::mem::take(&mut self.has_narrowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next message of that path's, as time passes. Any of other paths are answered.
    fn next_of(probing: &mut Probing, now_ns: &mut u64, path: u8) -> Trial {
        loop {
            *now_ns = probing.deadline_ns().max(*now_ns);
            match probing.next(*now_ns) {
                Some(trial @ (Trial::Probe(of, _) | Trial::Answer(of, _))) if of == path => {
                    return trial;
                }
                Some(Trial::Probe(of, bytes)) => {
                    probing.answered(*now_ns, of, &(bytes as u16).to_le_bytes());
                }
                _ => {}
            }
        }
    }

    #[test]
    fn frames_are_as_long_as_the_narrowest_path_carries() {
        let (mut probing, mut now_ns) = (Probing::new(2, 8_000, 0), 0);
        // The other path's probes are answered, this one's are lost.
        for _ in 0..3 {
            let probe = next_of(&mut probing, &mut now_ns, 1);
            assert_eq!(probe, Trial::Probe(1, 8_000));
            assert_eq!(probing.datagram_bytes(), DATAGRAM_BYTES_MIN);
        }
        let Trial::Probe(_, bytes) = next_of(&mut probing, &mut now_ns, 1) else {
            panic!("a shorter one is tried");
        };
        assert!(bytes < 8_000);
        probing.answered(now_ns, 1, &(bytes as u16).to_le_bytes());
        assert_eq!(probing.datagram_bytes(), bytes);
    }

    /// A probe that was cut to pieces or joined on the way shows nothing.
    #[test]
    fn a_probe_is_answered_if_it_came_as_long_as_it_says() {
        let mut probing = Probing::new(2, 8_000, 0);
        let said = 1_400_u16.to_le_bytes();
        for (plain, datagram_bytes) in [(&said[..], 1_399), (&said, 1_401), (&said[..1], 1_400)] {
            probing.came(1, plain, datagram_bytes);
            assert!(!matches!(probing.next(0), Some(Trial::Answer(..))));
        }
        probing.came(2, &said, 1_400);
        assert!(!matches!(probing.next(0), Some(Trial::Answer(..))));
        probing.came(1, &said, 1_400);
        assert_eq!(
            (probing.deadline_ns(), probing.next(0)),
            (0, Some(Trial::Answer(1, 1_400)))
        );
        assert!(!matches!(probing.next(0), Some(Trial::Answer(..))));
    }

    #[test]
    fn a_path_becomes_narrower_when_the_system_says_so_or_losses_show_it() {
        let (mut probing, mut now_ns) = (Probing::new(1, 8_000, 0), 0);
        let wide = |probing: &mut Probing, now_ns: &mut u64| {
            while probing.datagram_bytes() < 7_000 {
                if let Trial::Probe(_, bytes) = next_of(probing, now_ns, 0) {
                    probing.answered(*now_ns, 0, &(bytes as u16).to_le_bytes());
                }
            }
            assert!(!probing.has_narrowed());
        };
        wide(&mut probing, &mut now_ns);
        probing.too_long(now_ns, 0, 7_900);
        assert!(probing.has_narrowed() && !probing.has_narrowed());
        assert_eq!(probing.datagram_bytes(), DATAGRAM_BYTES_MIN);
        wide(&mut probing, &mut now_ns);
        now_ns += 1_000_000_000;
        // Too few, or too short to say anything.
        probing.lost(now_ns, 0, LOST_MAX - 1, 5_000);
        probing.lost(now_ns, 0, LOST_MAX, DATAGRAM_BYTES_MIN);
        assert_eq!(probing.next(now_ns), None);
        probing.lost(now_ns, 0, LOST_MAX, 5_000);
        while probing.datagram_bytes() > DATAGRAM_BYTES_MIN {
            next_of(&mut probing, &mut now_ns, 0);
        }
        assert!(probing.has_narrowed());
    }
}
