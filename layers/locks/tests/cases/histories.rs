//! Random histories of several clients: no two holders ever conflict, each request ends, and a value
//! that is counted up under locks counts all.

use std::collections::BTreeMap;
use std::sync::Mutex;

use hamlyn::Wait;
use hamlyn_locks::{Lock, LockClient, LockError, Mode, Refusal, ValueBlock};

use crate::player::{LONG, Player};
use crate::{Host, ROUNDS, World};

const CLIENTS: usize = 4;
const STEPS: u64 = 60;
const NAMES: [&str; 3] = ["a", "b", "c"];
const MODES: [Mode; 6] = [Mode::Nl, Mode::Cr, Mode::Cw, Mode::Pr, Mode::Pw, Mode::Ex];

/// A generator of numbers, the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Everything that all clients hold at this instant, and the values that were counted.
#[derive(Default)]
struct Holders {
    held: BTreeMap<(usize, usize), (usize, Mode)>,
    values: [u64; NAMES.len()],
    grants: u64,
}

impl Holders {
    /// A client holds a lock in that mode from now on.
    fn holds(&mut self, lock: (usize, usize), name: usize, mode: Mode) {
        for (other, (of, held)) in &self.held {
            let conflicts = *other != lock && *of == name && !mode.is_compatible(*held);
            assert!(
                !conflicts,
                "{lock:?} has {mode} of {name}, and {other:?} has {held}"
            );
        }
        self.held.insert(lock, (name, mode));
        self.grants += 1;
    }
}

pub(crate) fn holders_never_conflict_and_all_end(world: World) {
    for seed in 0..ROUNDS {
        let holders = &Mutex::new(Holders::default());
        // With two servers circles over both end by time-outs alone.
        let servers = 1 + seed as usize % 2;
        world.run(servers + CLIENTS, &|player| {
            if player.number < servers {
                let statistics = player.serve(servers, CLIENTS)?;
                assert_eq!(
                    (statistics.clients, statistics.locks),
                    (0, 0),
                    "{statistics:?}"
                );
                assert_eq!(
                    (statistics.died, statistics.violations),
                    (0, 0),
                    "{statistics:?}"
                );
                return Ok(());
            }
            let random = Random(seed << 8 | player.number as u64);
            let own = Own {
                player,
                client: player.client_of(servers),
                holders,
                wait: if servers == 1 { LONG } else { Wait::millis(20) },
                random,
                locks: BTreeMap::new(),
            };
            own.run()?;
            player.finish()
        });
        let holders = holders.lock().unwrap();
        assert!(holders.held.is_empty());
        assert!(holders.grants > STEPS, "{} grants", holders.grants);
    }
}

/// A client with its locks, by numbers of its own.
struct Own<'a> {
    player: &'a Player<'a>,
    client: LockClient<Host>,
    holders: &'a Mutex<Holders>,
    wait: Wait,
    random: Random,
    locks: BTreeMap<usize, (usize, Lock<Host>)>,
}

impl Own<'_> {
    fn run(mut self) -> Result<(), LockError> {
        // So that no resource goes with its value.
        let kept: Vec<_> = NAMES
            .iter()
            .map(|name| self.client.acquire(name, Mode::Nl, LONG))
            .collect::<Result<_, _>>()?;
        self.player.arrive(&self.client, CLIENTS);
        let mut next = 0;
        for _ in 0..STEPS {
            let steps = [0, 0, 0, 1, 1, 2, 2, 3];
            let failed = match steps[self.random.below(steps.len())] {
                0 if self.locks.len() < 3 => {
                    next += 1;
                    self.acquire(next)
                }
                1 => self.convert(),
                3 => self.client.serve(Wait::millis(1)).map(drop),
                _ => self.release(),
            };
            match failed {
                Ok(()) => {}
                Err(LockError::Refused { refusal, .. }) => match refusal {
                    Refusal::Busy => {}
                    // Then it lets go of what it has, as a program would.
                    Refusal::Deadlock => {
                        while !self.locks.is_empty() {
                            self.release()?
                        }
                    }
                    _ => panic!("{refusal}"),
                },
                Err(LockError::TimedOut) if self.wait != LONG => {
                    while !self.locks.is_empty() {
                        self.release()?;
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
        while !self.locks.is_empty() {
            self.release()?;
        }
        drop(kept);
        Ok(())
    }

    fn number(&self) -> usize {
        self.player.number
    }

    fn acquire(&mut self, number: usize) -> Result<(), LockError> {
        let name = self.random.below(NAMES.len());
        let mode = MODES[self.random.below(MODES.len())];
        let lock = match self.random.below(4) {
            0 => self.client.try_acquire(NAMES[name], mode, LONG)?,
            _ => self.client.acquire(NAMES[name], mode, self.wait)?,
        };
        let mut holders = self.holders.lock().unwrap();
        holders.holds((self.number(), number), name, mode);
        check_value(&lock, name, mode, &holders);
        drop(holders);
        self.locks.insert(number, (name, lock));
        Ok(())
    }

    fn convert(&mut self) -> Result<(), LockError> {
        let Some((number, name)) = self.any() else {
            return Ok(());
        };
        let to = MODES[self.random.below(MODES.len())];
        self.count_up(number);
        let key = (self.number(), number);
        let Some((_, lock)) = self.locks.get_mut(&number) else {
            return Ok(());
        };
        let before = self.holders.lock().unwrap().held[&key].1;
        let is_weaker = to.is_weaker_or_same(before);
        // From when it is asked for on, it excludes no more than both modes do.
        let meanwhile = match before.is_weaker_or_same(to) {
            _ if is_weaker => to,
            true => before,
            false => Mode::Cr,
        };
        self.holders
            .lock()
            .unwrap()
            .held
            .insert(key, (name, meanwhile));
        let converted = match self.random.below(3) {
            0 => lock.try_convert(to, LONG),
            _ => lock.convert(to, self.wait),
        };
        match converted {
            Ok(()) => {
                let mut holders = self.holders.lock().unwrap();
                holders.holds(key, name, to);
                check_value(lock, name, to, &holders);
                Ok(())
            }
            failed => {
                assert!(!is_weaker, "a weaker mode is granted at once: {failed:?}");
                if matches!(failed, Err(LockError::Refused { .. })) {
                    self.holders
                        .lock()
                        .unwrap()
                        .held
                        .insert(key, (name, before));
                }
                failed
            }
        }
    }

    fn release(&mut self) -> Result<(), LockError> {
        let Some((number, _)) = self.any() else {
            return Ok(());
        };
        self.count_up(number);
        let (_, lock) = self.locks.remove(&number).unwrap();
        self.holders
            .lock()
            .unwrap()
            .held
            .remove(&(self.number(), number));
        lock.release()
    }

    fn any(&mut self) -> Option<(usize, usize)> {
        let at = self.random.below(self.locks.len().max(1));
        let found = self.locks.iter().nth(at);
        found.map(|(number, (name, _))| (*number, *name))
    }

    /// Writes another value, if the lock may.
    fn count_up(&mut self, number: usize) {
        let key = (self.player.number, number);
        let mut holders = self.holders.lock().unwrap();
        let (name, mode) = holders.held[&key];
        if mode.writes_value() {
            holders.values[name] += 1;
            let value = holders.values[name].to_le_bytes();
            self.locks
                .get_mut(&number)
                .unwrap()
                .1
                .set_value(&value)
                .unwrap();
        }
    }
}

/// The value that comes with a lock is the one that was written last; certainly if it excludes
/// those who write.
fn check_value(lock: &Lock<Host>, name: usize, mode: Mode, holders: &Holders) {
    if mode.is_compatible(Mode::Pw) {
        return;
    }
    let expected = holders.values[name];
    match lock.value().unwrap() {
        ValueBlock::Missing => assert_eq!(expected, 0),
        ValueBlock::Valid(bytes) => assert_eq!(bytes[..8], expected.to_le_bytes()),
        ValueBlock::NotValid(_) => panic!("nobody has died"),
    }
}
