//! The model checker looks for a sleeper whom nobody wakes, and the kernel's words are tried with
//! peers that misuse theirs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use loom::sync::atomic as modelled;
use loom::sync::{Arc as Shared, Mutex};

use super::*;
use crate::doorbell::{Attention, BellMemory, Fence, MarkReady, Waker};
use crate::shared::PAGE_BYTES;

/// What the model leaves out, to see that it is missed.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    /// The sleeper notes the count after its last look.
    NotedLate,
    /// The sleeper notes the count, and takes what lies in the descriptor, when it has announced
    /// that it sleeps.
    AnnouncedFirst,
    /// The sleeper lets an announcement stand for the next sleep.
    AnnouncedOnce,
    /// Who rings wakes without counting.
    NotCounted,
    /// Who rings does not turn to the descriptor when nobody waits at the word.
    OnlyAtWord,
    /// The senders pass no barrier.
    NoBarrier,
}

/// Where the sleeper waits.
#[derive(Clone, Copy, PartialEq, Debug)]
enum SleepsAt {
    Word,
    Descriptor,
}

/// The kernel's side of a word: a thread that waits at it is entered and woken under a lock.
#[derive(Clone)]
struct Kernel {
    word: Shared<modelled::AtomicU32>,
    queue: Shared<Mutex<Queue>>,
    counts: bool,
}

#[derive(Default)]
struct Queue {
    waits: bool,
    woken: bool,
}

impl WakeMemory for Kernel {
    fn count(&self) {
        if self.counts {
            self.word.fetch_add(1, Ordering::Release);
        }
    }
    fn load(&self) -> u32 {
        self.word.load(Ordering::Acquire)
    }
    fn wake(&self) -> bool {
        let mut queue = self.queue.lock().unwrap();
        let wakes = queue.waits && !queue.woken;
        queue.woken |= wakes;
        wakes
    }
}

impl Kernel {
    fn wait(&self, noted: u32) {
        let mut queue = self.queue.lock().unwrap();
        queue.waits = self.word.load(Ordering::Relaxed) == noted;
    }

    fn sleeps_for_ever(&self) -> bool {
        let queue = self.queue.lock().unwrap();
        queue.waits && !queue.woken
    }
}

struct Announced {
    word: Shared<modelled::AtomicU64>,
    barrier: bool,
}

impl BellMemory for Announced {
    fn store(&self, value: u64) {
        self.word.store(value, Ordering::Release);
    }
    fn load(&self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }
    fn fence(&self, _: Fence) {
        if self.barrier {
            modelled::fence(Ordering::SeqCst);
        }
    }
}

struct NoNotes;

impl MarkReady for NoNotes {
    fn mark(&self) {}
}

/// Two messages, each followed by a look at the announcement and perhaps a ring, on one side. On
/// the other, what has come is taken; then twice note, announcement and look, and a sleep that ends
/// early the first time.
fn nobody_sleeps_beside_a_message(at: SleepsAt, fault: Fault) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(move || {
        let announced = Shared::new(modelled::AtomicU64::new(0));
        let messages = Shared::new(modelled::AtomicU32::new(0));
        let socket = Shared::new(Mutex::new(false));
        let kernel = Kernel {
            word: Shared::new(modelled::AtomicU32::new(0)),
            queue: Shared::default(),
            counts: fault != Fault::NotCounted,
        };
        let sender = {
            let memory = Announced {
                word: Shared::clone(&announced),
                barrier: fault != Fault::NoBarrier,
            };
            let (messages, socket) = (Shared::clone(&messages), Shared::clone(&socket));
            let word = WakeWord::over(kernel.clone());
            loom::thread::spawn(move || {
                let mut waker = Waker::over(memory, NoNotes);
                for message in 1..=2 {
                    messages.store(message, Ordering::Release);
                    if waker.must_ring() && !word.ring() && fault != Fault::OnlyAtWord {
                        *socket.lock().unwrap() = true;
                    }
                }
            })
        };
        let word = WakeWord::over(kernel.clone());
        let mut attention = Attention::over(Announced {
            word: announced,
            barrier: true,
        });
        let note = || {
            *socket.lock().unwrap() = false;
            word.rings()
        };
        let (mut taken, mut noted, mut found) = (messages.load(Ordering::Acquire), 0, true);
        for sleep in 1..=2 {
            if fault != Fault::AnnouncedFirst {
                noted = note();
            }
            if sleep == 1 || fault != Fault::AnnouncedOnce {
                attention.sleep();
            }
            if fault == Fault::AnnouncedFirst {
                noted = note();
            }
            modelled::fence(Ordering::SeqCst);
            let seen = messages.load(Ordering::Acquire);
            found = seen != taken;
            taken = seen;
        }
        if fault == Fault::NotedLate {
            noted = word.rings();
        }
        if !found && at == SleepsAt::Word {
            kernel.wait(noted);
        }
        sender.join().unwrap();
        let sleeps_on = match at {
            SleepsAt::Word => kernel.sleeps_for_ever(),
            SleepsAt::Descriptor => !*socket.lock().unwrap(),
        };
        let is_all = taken == messages.load(Ordering::Relaxed);
        assert!(found || !sleeps_on || is_all, "slept beside a message");
    });
}

#[test]
fn no_ring_is_lost_wherever_the_sleeper_waits() {
    nobody_sleeps_beside_a_message(SleepsAt::Word, Fault::None);
    nobody_sleeps_beside_a_message(SleepsAt::Descriptor, Fault::None);
}

#[test]
fn the_checker_finds_what_is_left_out() {
    for (place, fault) in [
        (SleepsAt::Word, Fault::NotedLate),
        (SleepsAt::Word, Fault::AnnouncedFirst),
        (SleepsAt::Word, Fault::AnnouncedOnce),
        (SleepsAt::Word, Fault::NotCounted),
        (SleepsAt::Word, Fault::NoBarrier),
        (SleepsAt::Descriptor, Fault::OnlyAtWord),
        (SleepsAt::Descriptor, Fault::AnnouncedFirst),
        (SleepsAt::Descriptor, Fault::AnnouncedOnce),
        (SleepsAt::Descriptor, Fault::NoBarrier),
    ] {
        let run = AssertUnwindSafe(|| nobody_sleeps_beside_a_message(place, fault));
        assert!(catch_unwind(run).is_err(), "{place:?} {fault:?}");
    }
}

/// Far longer than anything here takes.
const TIMEOUT_NS: u64 = 20_000_000_000;

fn word() -> WakeWord {
    let page = Mapping::anonymous(PAGE_BYTES).unwrap();
    WakeWord::new(Arc::new(page), Geometry::DEFAULT).unwrap()
}

fn after_ns(span_ns: u64) -> u64 {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64 + span_ns
}

/// Whether words can be waited at here: not before Linux 5.16, nor in some sandboxes.
fn has_words() -> bool {
    let own = AtomicU32::new(0);
    let slept = WaitSet::new().sleep(&own, 1, None);
    assert!(matches!(slept, Ok(()) | Err(Errno::NOSYS | Errno::PERM)));
    slept.is_ok()
}

/// Lets a thread sleep at these words, and its own, until `act` says that it has been woken.
fn woken_by(words: &[WakeWord], act: impl Fn(&AtomicU32) -> bool) {
    if !has_words() {
        return;
    }
    let own = AtomicU32::new(0);
    let awake = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut wait_set = WaitSet::new();
            for word in words {
                assert!(wait_set.add(word.clone()));
            }
            wait_set.sleep(&own, 0, Some(after_ns(TIMEOUT_NS))).unwrap();
            awake.store(true, Ordering::Release);
        });
        let begun = Instant::now();
        while !act(&own) {
            assert!(!awake.load(Ordering::Acquire), "it woke for nothing");
            assert!(begun.elapsed() < Duration::from_nanos(TIMEOUT_NS / 2));
            std::thread::yield_now();
        }
    });
}

#[test]
fn each_word_wakes_and_says_so() {
    let words: Vec<_> = (0..WORDS_MAX).map(|_| word()).collect();
    for ringing in [0, WORDS_MAX / 2, WORDS_MAX - 1] {
        // Only waking: a count would keep it from falling asleep.
        woken_by(&words, |_| words[ringing].memory.wake());
    }
    woken_by(&words, |own| {
        matches!(futex::wake(own, Flags::PRIVATE, 1), Ok(1))
    });
    assert!(!words[0].ring(), "nobody waits");
}

#[test]
fn a_ring_since_the_last_look_prevents_sleep() {
    if !has_words() {
        return;
    }
    let (words, own) = ([word(), word()], AtomicU32::new(7));
    let until_ns = after_ns(TIMEOUT_NS);
    let wait_set = || {
        let mut wait_set = WaitSet::new();
        assert!(words.iter().all(|word| wait_set.add(word.clone())));
        wait_set
    };
    for word in &words {
        let wait_set = wait_set();
        assert!(!word.ring());
        wait_set.sleep(&own, 7, Some(until_ns)).unwrap();
    }
    wait_set().sleep(&own, 6, Some(until_ns)).unwrap();
    assert!(after_ns(0) < until_ns, "it slept");
    // And who was not sleeps until its time is over.
    let until_ns = after_ns(2_000_000);
    while after_ns(0) < until_ns {
        wait_set().sleep(&own, 7, Some(until_ns)).unwrap();
    }
}

#[test]
fn there_is_a_limit() {
    let mut wait_set = WaitSet::new();
    assert!((0..WORDS_MAX).all(|_| wait_set.add(word())));
    assert!(!wait_set.add(word()));
    wait_set.clear();
    assert!(wait_set.add(word()));
}

#[test]
fn a_word_beyond_its_memory_is_refused() {
    let short = Arc::new(Mapping::anonymous(0).unwrap());
    assert!(WakeWord::new(short, Geometry::DEFAULT).is_err());
}

/// A peer that shares a word can move its waiters to another: then it wakes no thread any more by
/// its own word, and all other peers do.
#[test]
fn a_peer_that_moves_the_sleeper_elsewhere_silences_only_itself() {
    let (evil, honest) = (word(), word());
    let elsewhere = AtomicU32::new(0);
    let words = [evil.clone(), honest.clone()];
    let moved = AtomicBool::new(false);
    woken_by(&words, |_| {
        if !moved.load(Ordering::Relaxed) {
            let from = evil.memory.word().unwrap();
            let count = futex::requeue(from, Flags::empty(), 0, 1, &elsewhere).unwrap();
            moved.store(count > 0, Ordering::Relaxed);
            return false;
        }
        assert!(!evil.ring(), "it is not there any more");
        assert!(honest.ring());
        true
    });
}

/// It stores anything at any time: that ends sleeps early, but it neither fails nor wakes more
/// often than there were stores.
#[test]
fn a_peer_that_scribbles_ends_a_sleep_for_each_store_at_most() {
    if !has_words() {
        return;
    }
    let (scribbled, own) = (word(), AtomicU32::new(0));
    let stop = AtomicBool::new(false);
    let stores = std::thread::scope(|scope| {
        let peer = scope.spawn(|| {
            let word = scribbled.memory.word().unwrap();
            let mut stores = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                stores += 1;
                word.store((stores as u32).wrapping_mul(0x9e37_79b9), Ordering::Relaxed);
                futex::wake(word, Flags::empty(), u32::MAX).unwrap();
            }
            stores
        });
        let (mut early, until_ns) = (0_u64, after_ns(50_000_000));
        while after_ns(0) < until_ns {
            let mut wait_set = WaitSet::new();
            assert!(wait_set.add(scribbled.clone()));
            wait_set.sleep(&own, 0, Some(until_ns)).unwrap();
            early += 1;
        }
        stop.store(true, Ordering::Relaxed);
        let stores = peer.join().unwrap();
        // Each store ends a sleep by its value, its wake-up another one, and the deadline the last.
        assert!(early <= 2 * stores + 1, "{early} for {stores}");
        stores
    });
    assert!(stores > 0);
    // What it has left there disturbs nobody.
    let until_ns = after_ns(2_000_000);
    let mut wait_set = WaitSet::new();
    assert!(wait_set.add(scribbled));
    wait_set.sleep(&own, 0, Some(until_ns)).unwrap();
    assert!(after_ns(0) >= until_ns);
}
