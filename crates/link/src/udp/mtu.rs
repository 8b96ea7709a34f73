//! How long a datagram may be on one path: found by trying (RFC 8899), since reports from the
//! network are lost, or forged.
//!
//! A pure state machine: it is told the time, which probes came through, and when datagrams are
//! lost in a row; it says how long a datagram may be, and when to send a probe of which length. It
//! trusts no report that a length passes, only answers to its own probes; that one does not pass it
//! believes the local system alone.
//!
//! A search goes upwards through the usual lengths, so that it waits for nothing as long as probes
//! pass, then halves what is left. When datagrams are lost in a row, a probe of their length tells
//! whether the path has become a *black hole*: then the length falls to the least at once, and is
//! searched for anew. Now and then a longer one is tried again.

use super::{DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN};

/// Usual lengths of datagrams: what is left of 1,400, 1,500, 4,096 and 9,000 bytes, for IPv6 and
/// for IPv4, with and without a tunnel.
const USUAL_BYTES: [usize; 9] = [
    1_352, 1_372, 1_424, 1_452, 1_472, 4_048, 8_922, 8_952, 8_972,
];

/// How a length is searched for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MtuSettings {
    /// What every path carries, in bytes of a datagram.
    pub floor_bytes: usize,
    /// Nothing longer is tried, in bytes of a datagram.
    pub ceiling_bytes: usize,
    /// As exact as this, in bytes; at least 1.
    pub step_bytes: usize,
    /// A probe that is not answered for so long is lost, in nanoseconds.
    pub probe_ns: u64,
    /// So many probes of one length are tried; at least 1.
    pub probes_max: u8,
    /// A longer datagram is tried again after so long, in nanoseconds.
    pub again_ns: u64,
}

impl Default for MtuSettings {
    fn default() -> Self {
        Self {
            floor_bytes: DATAGRAM_BYTES_MIN,
            ceiling_bytes: 8_972,
            step_bytes: 16,
            probe_ns: 200_000_000,
            probes_max: 3,
            again_ns: 600_000_000_000,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Probe {
    bytes: usize,
    tries: u8,
    until_ns: u64,
}

/// The length of datagrams on one path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathMtu {
    settings: MtuSettings,
    /// Known to pass.
    passes: usize,
    /// The least that is believed not to; one more than the ceiling if none is.
    fails: usize,
    /// What the system can send at all; less than one more than the ceiling if it told.
    system_fails: usize,
    /// To be tried before anything else.
    hint: Option<usize>,
    probe: Option<Probe>,
    /// What passed is tried again; and when it may be next.
    suspected: Option<Probe>,
    trusted_ns: u64,
    /// When a longer one is tried again; while searching, the past.
    search_ns: u64,
    black_holes: u64,
}

impl PathMtu {
    /// Begins to search at once. Settings that contradict each other are put right: a ceiling is no
    /// lower than the floor.
    pub fn new(settings: MtuSettings, now_ns: u64) -> Self {
        let floor = settings.floor_bytes.clamp(1, DATAGRAM_BYTES_MAX);
        let ceiling = settings.ceiling_bytes.clamp(floor, DATAGRAM_BYTES_MAX);
        let settings = MtuSettings {
            floor_bytes: floor,
            ceiling_bytes: ceiling,
            step_bytes: settings.step_bytes.max(1),
            ..settings
        };
        Self {
            settings,
            passes: floor,
            fails: ceiling + 1,
            system_fails: ceiling + 1,
            hint: None,
            probe: None,
            suspected: None,
            trusted_ns: 0,
            search_ns: now_ns,
            black_holes: 0,
        }
    }

    /// The longest datagram that is known to pass, in bytes.
    #[inline]
    pub fn datagram_bytes(&self) -> usize {
        self.passes
    }

    /// Whether nothing is to be tried at present.
    pub fn is_settled(&self) -> bool {
        self.probe.is_none() && self.suspected.is_none() && self.next_length().is_none()
    }

    /// How often the path became a black hole.
    pub fn black_holes(&self) -> u64 {
        self.black_holes
    }

    /// What the system believes the way out to carry, in bytes: nothing longer is tried, and it is
    /// tried first.
    pub fn route(&mut self, now_ns: u64, bytes: usize) {
        let ceiling = self.settings.ceiling_bytes;
        self.system_fails = bytes.clamp(self.settings.floor_bytes, ceiling) + 1;
        self.fails = self.system_fails;
        self.fall_below(self.fails);
        self.hint = Some(self.system_fails - 1).filter(|&hint| hint > self.passes);
        self.search_ns = now_ns;
    }

    /// The system refused a datagram of so many bytes as too long.
    pub fn too_long(&mut self, now_ns: u64, bytes: usize) {
        let least = self.settings.floor_bytes + 1;
        self.system_fails = self.system_fails.min(bytes.max(least));
        self.fails = self.fails.min(self.system_fails);
        self.fall_below(self.fails);
        self.search_ns = now_ns;
    }

    /// Nothing from this length on passes any more.
    fn fall_below(&mut self, bytes: usize) {
        if self.passes >= bytes {
            self.passes = self.settings.floor_bytes;
            self.suspected = None;
        }
        self.hint = self.hint.filter(|&hint| hint < bytes);
        self.probe = self.probe.filter(|probe| probe.bytes < bytes);
    }

    /// The length of a probe to be sent now, if one is.
    pub fn poll(&mut self, now_ns: u64) -> Option<usize> {
        if let Some(bytes) = self.poll_suspected(now_ns) {
            return Some(bytes);
        }
        if let Some(probe) = &mut self.probe {
            if now_ns < probe.until_ns {
                return None;
            }
            if probe.tries < self.settings.probes_max {
                probe.tries += 1;
                probe.until_ns = now_ns.saturating_add(self.settings.probe_ns);
                return Some(probe.bytes);
            }
            self.fails = probe.bytes;
            self.probe = None;
            self.settle(now_ns);
        }
        if now_ns < self.search_ns {
            return None;
        }
        if self.next_length().is_none() {
            // It was settled, and it is time to try a longer one.
            self.fails = self.system_fails;
            self.settle(now_ns);
        }
        let bytes = self.next_length()?;
        self.hint = None;
        self.probe = Some(Probe {
            bytes,
            tries: 1,
            until_ns: now_ns.saturating_add(self.settings.probe_ns),
        });
        Some(bytes)
    }

    /// If nothing is left to be tried, it is for a while.
    fn settle(&mut self, now_ns: u64) {
        if self.next_length().is_none() {
            self.search_ns = now_ns.saturating_add(self.settings.again_ns);
        }
    }

    /// What would be tried next.
    fn next_length(&self) -> Option<usize> {
        if let Some(hint) = self.hint.filter(|&hint| hint > self.passes) {
            return Some(hint);
        }
        // The last one that may pass is tried, too, whatever the step.
        let last = self.fails - 1;
        if last <= self.passes {
            return None;
        }
        let is_open = self.fails == self.system_fails;
        if !is_open && self.fails - self.passes <= self.settings.step_bytes {
            return None;
        }
        let usual = USUAL_BYTES.into_iter().find(|&usual| usual > self.passes);
        if is_open {
            return Some(usual.map_or(last, |usual| usual.min(last)));
        }
        let middle = self.passes + (self.fails - self.passes) / 2;
        Some(usual.filter(|&usual| usual < self.fails).unwrap_or(middle))
    }

    /// When [`PathMtu::poll`] is to be called next.
    pub fn deadline_ns(&self) -> u64 {
        let search_ns = self.probe.map_or(self.search_ns, |probe| probe.until_ns);
        let suspected_ns = self.suspected.map_or(u64::MAX, |probe| probe.until_ns);
        search_ns.min(suspected_ns)
    }

    /// A probe of so many bytes was answered. One that nobody sent means nothing.
    pub fn probe_arrived(&mut self, now_ns: u64, bytes: usize) {
        if self
            .suspected
            .take_if(|probe| bytes >= probe.bytes)
            .is_some()
        {
            self.trusted_ns = now_ns.saturating_add(self.settings.probe_ns);
        }
        let is_awaited = self.probe.is_some_and(|probe| probe.bytes == bytes);
        let is_late = self.probe.is_none() && self.fails == bytes && bytes < self.system_fails;
        if !is_awaited && !is_late || bytes <= self.passes {
            return;
        }
        self.passes = bytes;
        self.fails = if is_late {
            self.system_fails
        } else {
            self.fails
        };
        self.probe = None;
        self.search_ns = now_ns;
        self.settle(now_ns);
    }

    /// Long datagrams, which were no probes, are lost one after the other. If what is known to pass
    /// is more than the least, that is tried once more, and believed no longer if it does not pass.
    /// Each time so much, and no more often than probes are.
    pub fn suspect(&mut self, now_ns: u64) {
        if self.passes > self.settings.floor_bytes
            && self.suspected.is_none()
            && now_ns >= self.trusted_ns
        {
            self.suspected = Some(Probe {
                bytes: self.passes,
                tries: 0,
                until_ns: now_ns,
            });
        }
    }

    /// The next probe of what passed until now, if it is due and there is one.
    fn poll_suspected(&mut self, now_ns: u64) -> Option<usize> {
        let settings = &self.settings;
        let probe = self.suspected.as_mut()?;
        if now_ns < probe.until_ns {
            return None;
        }
        if probe.tries < settings.probes_max {
            probe.tries += 1;
            probe.until_ns = now_ns.saturating_add(settings.probe_ns);
            return Some(probe.bytes);
        }
        self.black_holes += 1;
        self.passes = settings.floor_bytes;
        self.fails = self.system_fails;
        self.hint = None;
        self.probe = None;
        self.suspected = None;
        self.search_ns = now_ns;
        None
    }
}

#[cfg(test)]
mod tests;
