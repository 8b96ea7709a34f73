//! What happens to the hosts of a soak, and when: decided by a seed, one thing at a time for each
//! host.

use std::time::Duration;

use hamlyn_sim::random::Random;

use super::is_spared;

/// One thing that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// Its process is killed.
    Kill(usize),
    /// And started anew.
    Start(usize),
    /// It is stopped where it is.
    Hold(usize),
    /// And goes on.
    Release(usize),
    /// Its cable is pulled, so long perhaps that no link outlives it.
    Cut {
        /// Whose.
        host: usize,
        /// Whether links are lost.
        is_long: bool,
    },
    /// And plugged in.
    Mend(usize),
}

impl Event {
    /// To whom.
    pub(super) fn host(self) -> usize {
        match self {
            Self::Kill(host)
            | Self::Start(host)
            | Self::Hold(host)
            | Self::Release(host)
            | Self::Cut { host, .. }
            | Self::Mend(host) => host,
        }
    }
}

/// See the module.
pub(super) struct Trouble {
    random: Random,
    has_cables: bool,
    /// What is to happen to each host next.
    next: Vec<(Duration, Event)>,
}

/// Peace between two troubles of a host, in milliseconds.
const PEACE_MS: std::ops::Range<u64> = 4_000..16_000;

impl Trouble {
    pub(super) fn new(seed: u64, hosts: usize, has_cables: bool) -> Self {
        let mut trouble = Self {
            random: Random::new(seed),
            has_cables,
            next: Vec::new(),
        };
        trouble.next = (0..hosts)
            .map(|host| trouble.begin(Duration::ZERO, host))
            .collect();
        trouble
    }

    fn after(&mut self, at: Duration, range_ms: std::ops::Range<u64>) -> Duration {
        at + Duration::from_millis(self.random.within(range_ms))
    }

    fn begin(&mut self, at: Duration, host: usize) -> (Duration, Event) {
        let at = self.after(at, PEACE_MS);
        let mut drawn = self.random.below(10);
        if is_spared(host) && drawn < 4 {
            drawn = 4 + drawn % 2;
        }
        let event = match drawn {
            0..4 => Event::Kill(host),
            4..6 => Event::Hold(host),
            drawn if self.has_cables => Event::Cut {
                host,
                is_long: drawn >= 8,
            },
            _ => Event::Hold(host),
        };
        (at, event)
    }

    fn follow(&mut self, at: Duration, event: Event) -> (Duration, Event) {
        match event {
            Event::Kill(host) => (self.after(at, 10..2_000), Event::Start(host)),
            Event::Hold(host) => (self.after(at, 50..1_500), Event::Release(host)),
            // The transport gives up after 255 retries, which take ten seconds, and not before
            // five.
            Event::Cut { host, is_long } => {
                let range_ms = if is_long { 11_000..15_000 } else { 20..2_500 };
                (self.after(at, range_ms), Event::Mend(host))
            }
            Event::Start(host) | Event::Release(host) | Event::Mend(host) => self.begin(at, host),
        }
    }

    /// The next thing that happens by now.
    pub(super) fn next(&mut self, now: Duration) -> Option<Event> {
        let place = (0..self.next.len()).min_by_key(|place| self.next[*place].0)?;
        let (at, event) = self.next[place];
        if at > now {
            return None;
        }
        self.next[place] = self.follow(now, event);
        Some(event)
    }

    /// What must still happen so that all is well again.
    pub(super) fn end(&mut self) -> Vec<Event> {
        let open = self.next.drain(..).map(|(_, event)| event);
        open.filter(|event| matches!(event, Event::Start(_) | Event::Release(_) | Event::Mend(_)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_begins_ends() {
        for has_cables in [false, true] {
            let mut trouble = Trouble::new(3, 5, has_cables);
            let mut all = Vec::new();
            for second in 0..600 {
                while let Some(event) = trouble.next(Duration::from_secs(second)) {
                    all.push(event);
                }
            }
            all.extend(trouble.end());
            let count = |is: fn(&Event) -> bool| all.iter().filter(|event| is(event)).count();
            let kills = count(|event| matches!(event, Event::Kill(_)));
            let cuts = count(|event| matches!(event, Event::Cut { .. }));
            let holds = count(|event| matches!(event, Event::Hold(_)));
            assert!(kills > 0 && holds > 0 && (cuts > 0) == has_cables);
            assert_eq!(kills, count(|event| matches!(event, Event::Start(_))));
            assert_eq!(holds, count(|event| matches!(event, Event::Release(_))));
            assert_eq!(cuts, count(|event| matches!(event, Event::Mend(_))));
            let spared = |event: &&Event| is_spared(event.host());
            let mut killed = all.iter().filter(spared);
            assert!(killed.all(|event| !matches!(event, Event::Kill(_))));
        }
    }
}
