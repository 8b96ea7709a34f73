//! The kernel beside a model that says the same in another way: it keeps every message for ever,
//! with its place and its fate, and finds by counting all of them what the kernel knows at once.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits {
    page_bytes: 64,
    line_bytes: 16,
    frames: 5,
    advise_pages: 2,
    suspend_pages: 4,
};
/// Groups with a process; one more has none.
const GROUPS: u32 = 2;

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrive { gid: u32, bytes: u64 },
    Schedule(Option<u32>),
    Revoke,
    Dispose(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Waits,
    /// With its first byte in the buffer.
    Buffered(u64),
    DisposedDirectly,
    DisposedBuffered,
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    gid: u32,
    bytes: u64,
    fate: Fate,
}

#[derive(Default)]
struct Model {
    all: Vec<Known>,
    /// Bytes that were written to each buffer since it was last empty.
    written: [u64; GROUPS as usize],
    running: Option<u32>,
}

impl Model {
    fn first(&self, is_it: impl Fn(&Known) -> bool) -> Option<usize> {
        self.all.iter().position(is_it)
    }

    fn is_buffered(&self, gid: u32) -> bool {
        let is_it = |known: &Known| known.gid == gid && matches!(known.fate, Fate::Buffered(_));
        self.first(is_it).is_some()
    }

    /// The pages of a buffer one by one: those with a byte that is not read, and the last one that
    /// has room. One at least, once it was used.
    fn pages(&self, gid: u32) -> usize {
        let mut pages = BTreeSet::new();
        for known in self.all.iter().filter(|known| known.gid == gid) {
            if let Fate::Buffered(at) = known.fate {
                pages.extend((at..at + known.bytes).map(|byte| byte / LIMITS.page_bytes));
            }
        }
        let written = self.written[gid as usize];
        if !written.is_multiple_of(LIMITS.page_bytes) {
            pages.insert(written / LIMITS.page_bytes);
        }
        let was_used = |known: &Known| {
            known.gid == gid && matches!(known.fate, Fate::Buffered(_) | Fate::DisposedBuffered)
        };
        pages.len().max(self.first(was_used).is_some().into())
    }

    fn frames(&self) -> usize {
        (0..GROUPS).map(|gid| self.pages(gid)).sum()
    }

    /// The kernel takes away what it must. `revokes` if it must take the first in any case.
    fn settle(&mut self, mut revokes: bool) {
        while let Some(head) = self.first(|known| known.fate == Fate::Waits) {
            let Known { gid, .. } = self.all[head];
            let stays = self.running == Some(gid) && !self.is_buffered(gid);
            if stays && !std::mem::take(&mut revokes) {
                return;
            }
            if gid >= GROUPS {
                self.all[head].fate = Fate::Refused;
                continue;
            }
            let written = self.written[gid as usize];
            self.all[head].fate = Fate::Buffered(written);
            self.written[gid as usize] += self.all[head].bytes;
            if self.frames() as u64 > LIMITS.frames {
                self.all[head].fate = Fate::Waits;
                self.written[gid as usize] = written;
                return;
            }
        }
    }

    fn head(&self, gid: u32) -> Option<(usize, Case)> {
        let buffered = |known: &Known| known.gid == gid && matches!(known.fate, Fate::Buffered(_));
        if let Some(first) = self.first(buffered) {
            return Some((first, Case::Buffered));
        }
        let head = self.first(|known| known.fate == Fate::Waits)?;
        let is_its_own = self.all[head].gid == gid && self.running == Some(gid);
        is_its_own.then_some((head, Case::Direct))
    }

    fn dispose(&mut self, gid: u32) -> Option<(usize, Case)> {
        let (at, case) = self.head(gid)?;
        self.all[at].fate = match case {
            Case::Buffered => Fate::DisposedBuffered,
            Case::Direct => Fate::DisposedDirectly,
        };
        if !self.is_buffered(gid) {
            self.written[gid as usize] = 0;
        }
        Some((at, case))
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => (0..=GROUPS, 1..60_u64).prop_map(|(gid, bytes)| Event::Arrive { gid, bytes }),
        2 => prop::option::of(0..GROUPS).prop_map(Event::Schedule),
        1 => Just(Event::Revoke),
        5 => (0..GROUPS).prop_map(Event::Dispose),
    ];
    prop::collection::vec(event, 0..200)
}

proptest! {
    #[test]
    fn the_kernel_does_as_the_model(events in events()) {
        let mut kernel = Divert::new(LIMITS);
        let mut model = Model::default();
        (0..GROUPS).for_each(|gid| kernel.enter(Gid(gid)));
        let mut steps = Vec::new();
        let mut pages_max = [0; GROUPS as usize];
        let mut disposed = vec![Vec::new(); GROUPS as usize];
        for event in events {
            steps.clear();
            match event {
                Event::Arrive { gid, bytes } => {
                    let number = model.all.len();
                    let bytes_taken = bytes.next_multiple_of(LIMITS.line_bytes);
                    model.all.push(Known { gid, bytes: bytes_taken, fate: Fate::Waits });
                    kernel.arrive(Gid(gid), bytes, number, &mut steps);
                    model.settle(false);
                }
                Event::Schedule(gid) => {
                    kernel.schedule(gid.map(Gid), &mut steps);
                    model.running = gid;
                    model.settle(false);
                }
                Event::Revoke => {
                    let waits = model.first(|known| known.fate == Fate::Waits);
                    let waits = waits.map(|at| model.all[at].gid);
                    kernel.revoke(&mut steps);
                    if waits.is_some() && waits == model.running {
                        model.settle(true);
                    }
                }
                Event::Dispose(gid) => {
                    let ours = kernel.dispose(Gid(gid), &mut steps).ok();
                    prop_assert_eq!(ours, model.dispose(gid));
                    disposed[gid as usize].extend(ours.map(|(number, _)| number));
                    if ours.is_some() {
                        model.settle(false);
                    }
                }
            }
            for step in &steps {
                if let Step::Inserted { gid, message, .. } = step {
                    let fate = model.all[*message].fate;
                    prop_assert!(matches!(fate, Fate::Buffered(_)), "{gid:?} {fate:?}");
                }
            }
            let waiting = model.all.iter().filter(|known| known.fate == Fate::Waits).count();
            prop_assert_eq!(kernel.waiting(), waiting);
            for gid in 0..GROUPS {
                let counts = kernel.counts(Gid(gid));
                let pages = model.pages(gid);
                // Within an event the model sees the end only, and pages only come then.
                pages_max[gid as usize] = pages.max(pages_max[gid as usize]);
                prop_assert_eq!(counts.pages, pages as u64);
                prop_assert_eq!(counts.pages_max, pages_max[gid as usize] as u64);
                prop_assert_eq!(kernel.is_buffered(Gid(gid)), model.is_buffered(gid));
                prop_assert_eq!(kernel.head(Gid(gid)), model.head(gid));
            }
            prop_assert!(kernel.frames_in_use() <= LIMITS.frames);
        }
        // Each was disposed of once, in the order in which it came.
        for (gid, disposed) in disposed.iter().enumerate() {
            prop_assert!(disposed.is_sorted() && disposed.windows(2).all(|two| two[0] != two[1]));
            let counts = kernel.counts(Gid(gid as u32));
            let of_it = |known: &&Known| known.gid == gid as u32;
            let direct = model.all.iter().filter(of_it);
            let direct = direct.filter(|known| known.fate == Fate::DisposedDirectly).count();
            prop_assert_eq!(counts.direct, direct as u64);
        }
        let refused = model.all.iter().filter(|known| known.fate == Fate::Refused).count();
        prop_assert_eq!(kernel.refused(), refused as u64);
    }
}

const ONE: Gid = Gid(0);
const OTHER: Gid = Gid(1);

fn kernel(limits: Limits) -> Divert<u32> {
    let mut kernel = Divert::new(limits);
    kernel.enter(ONE);
    kernel.enter(OTHER);
    kernel
}

/// A message that comes in buffered mode goes behind those that were buffered, though its program
/// runs; the first message after the last one was disposed of is direct again.
#[test]
fn the_mode_lasts_until_the_buffer_is_empty() {
    let mut kernel = kernel(LIMITS);
    let mut steps = Vec::new();
    kernel.schedule(Some(OTHER), &mut steps);
    kernel.arrive(ONE, 8, 1, &mut steps);
    kernel.schedule(Some(ONE), &mut steps);
    kernel.arrive(ONE, 8, 2, &mut steps);
    assert_eq!(kernel.dispose(ONE, &mut steps), Ok((1, Case::Buffered)));
    kernel.arrive(ONE, 8, 3, &mut steps);
    assert_eq!(kernel.dispose(ONE, &mut steps), Ok((2, Case::Buffered)));
    assert_eq!(kernel.dispose(ONE, &mut steps), Ok((3, Case::Buffered)));
    assert!(!kernel.is_buffered(ONE));
    kernel.arrive(ONE, 8, 4, &mut steps);
    assert_eq!(kernel.dispose(ONE, &mut steps), Ok((4, Case::Direct)));
    assert_eq!(
        kernel.dispose(ONE, &mut steps),
        Err(BadDispose { gid: ONE })
    );
    let counts = kernel.counts(ONE);
    assert_eq!((counts.direct, counts.buffered, counts.episodes), (1, 3, 1));
}

/// A message for the program that runs holds up all behind it, until it is disposed of or revoked.
#[test]
fn the_queue_is_one() {
    let mut kernel = kernel(LIMITS);
    let mut steps = Vec::new();
    kernel.schedule(Some(ONE), &mut steps);
    kernel.arrive(ONE, 8, 1, &mut steps);
    kernel.arrive(OTHER, 8, 2, &mut steps);
    kernel.arrive(Gid(7), 8, 3, &mut steps);
    assert!(steps.is_empty());
    kernel.revoke(&mut steps);
    let inserted = |gid, message| Step::Inserted {
        gid,
        message,
        pages: 1,
    };
    let refused = Step::Refused {
        gid: Gid(7),
        message: 3,
    };
    assert_eq!(steps, [inserted(ONE, 1), inserted(OTHER, 2), refused]);
    assert_eq!(kernel.head(ONE), Some((1, Case::Buffered)));
}

/// The thresholds of overflow control speak once until the buffer is empty; without a frame the
/// queue stalls, and goes on when a page is given back.
#[test]
fn overflow_control_speaks_once() {
    let mut kernel = kernel(LIMITS);
    let mut steps = Vec::new();
    // Each takes a page.
    (0..7).for_each(|number| kernel.arrive(ONE, 64, number, &mut steps));
    let advice = steps
        .iter()
        .filter(|step| **step == Step::AdviseGang { gid: ONE });
    assert_eq!(advice.count(), 1);
    let suspensions = steps
        .iter()
        .filter(|step| **step == Step::Suspend { gid: ONE });
    assert_eq!(suspensions.count(), 1);
    assert_eq!((kernel.counts(ONE).pages, kernel.waiting()), (5, 2));
    assert_eq!(steps.last(), Some(&Step::Stalled { gid: ONE }));
    steps.clear();
    assert_eq!(kernel.dispose(ONE, &mut steps), Ok((0, Case::Buffered)));
    let Some(Step::Inserted {
        message: 5,
        pages: 1,
        ..
    }) = steps.first()
    else {
        panic!("{steps:?}");
    };
    assert_eq!(kernel.waiting(), 1);
}
