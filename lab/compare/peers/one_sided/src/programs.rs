//! The programs of `peers/harness/programs.h`: random updates, em3d, and a sort.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use hamlyn::one_sided::{Atomic, Change, OPERATIONS_MAX, Width};

use super::{LONG, Process, WORDS_AT};

/// The words before are counters of the sort.
const KEYS_AT: u64 = 8;
const KEYS_MAX: u64 = 32_768;
const NODES: u64 = 200;
const DEGREE: u64 = 10;
const REMOTE_PER_CENT: u64 = 40;
const TABLES_BYTES: [u64; 2] = [65_536, 4_194_304];
/// Words of each process: half of the greatest table, and some.
pub(crate) const WORDS: u64 = TABLES_BYTES[1] / 8 / 2 + 64;

const _: () = assert!(KEYS_AT + 2 * KEYS_MAX <= WORDS);

fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// An edge: the process and the node at which it begins, and its weight.
#[derive(Clone, Copy)]
struct Edge {
    proc: u32,
    at: u64,
    weight: f64,
}

fn edge_of(procs: u32, proc: u32, kind: u64, node: u64, number: u64) -> Edge {
    let random = mixed(((u64::from(proc) * 2 + kind) * NODES + node) * DEGREE + number);
    let is_remote = procs > 1 && random % 100 < REMOTE_PER_CENT;
    let distance = match is_remote {
        true => 1 + ((random >> 8) % u64::from(procs - 1)) as u32,
        false => 0,
    };
    Edge {
        proc: (proc + distance) % procs,
        at: (random >> 20) % NODES,
        weight: ((random >> 32) % 1000) as f64 / 1e6,
    }
}

fn first_value(proc: u32, kind: u64, node: u64) -> f64 {
    (mixed((u64::from(proc) * 2 + kind) * NODES + node) % 1000) as f64
}

/// To which process a key goes.
fn process_of(key: u64, procs: u32) -> u32 {
    (((key >> 32) * u64::from(procs)) >> 32) as u32
}

impl Process {
    fn own_word(&self, at: u64) -> Result<u64> {
        Ok(self.area.load_u64(WORDS_AT + 8 * at)?)
    }

    fn set_own_word(&self, at: u64, value: u64) -> Result<()> {
        Ok(self.area.store_u64(WORDS_AT + 8 * at, value)?)
    }

    fn peer_read_word(&mut self, proc: u32, at: u64) -> Result<u64> {
        let peer = &mut self.peers[proc as usize];
        Ok(self
            .manager
            .session()
            .read_word(peer, WORDS_AT + 8 * at, LONG)?)
    }

    fn peer_add_word(&mut self, proc: u32, at: u64, value: u64) -> Result<u64> {
        let at = WORDS_AT + 8 * at;
        if proc == self.me {
            let atomic = Atomic::new(Change::Add, Width::Bits64, value);
            return Ok(self.area.change_at(at, &atomic)?);
        }
        let peer = &mut self.peers[proc as usize];
        Ok(self
            .manager
            .session()
            .change(peer, at, Change::Add, value, LONG)?)
    }

    fn peer_xor_word(&mut self, proc: u32, at: u64, value: u64) -> Result<()> {
        let at = WORDS_AT + 8 * at;
        let atomic = Atomic::new(Change::Xor, Width::Bits64, value);
        if proc == self.me {
            self.area.change_at(at, &atomic)?;
            return Ok(());
        }
        let mut interface = self.manager.session();
        let peer = &mut self.peers[proc as usize];
        if peer.window().is_some() {
            interface.change(peer, at, Change::Xor, value, LONG)?;
            return Ok(());
        }
        let _ = interface.begin_atomic(peer, at, atomic, LONG)?;
        drop(interface);
        self.make_room(proc)
    }

    fn peer_put_word(&mut self, proc: u32, at: u64, value: u64) -> Result<()> {
        if proc == self.me {
            return self.set_own_word(at, value);
        }
        let (at, bytes) = (WORDS_AT + 8 * at, value.to_le_bytes());
        let mut interface = self.manager.session();
        let peer = &mut self.peers[proc as usize];
        if peer.window().is_some() {
            return Ok(interface.put(peer, at, &bytes, LONG)?);
        }
        let _ = interface.begin_put(peer, at, &bytes, LONG)?;
        drop(interface);
        self.make_room(proc)
    }

    /// So that one more operation may be begun.
    fn make_room(&mut self, proc: u32) -> Result<()> {
        let (interface, peer) = (&mut self.manager.session(), &mut self.peers[proc as usize]);
        if interface.outstanding(peer) == OPERATIONS_MAX {
            interface.finish_all(peer, LONG)?;
        }
        Ok(())
    }

    fn peer_complete(&mut self) -> Result<()> {
        for peer in &mut self.peers {
            self.manager.session().finish_all(peer, LONG)?;
        }
        Ok(())
    }

    /// Runs a program with a few units of work, then with as many as last so long; nanoseconds for
    /// a unit of one process.
    fn measured(
        &mut self,
        few: u64,
        most: u64,
        lasts: Duration,
        mut program: impl FnMut(&mut Self, u64) -> Result<()>,
    ) -> Result<f64> {
        let mut units = few;
        let mut took = Duration::ZERO;
        for round in 0..2 {
            units = self.broadcast(units)?;
            self.barrier()?;
            let begun = Instant::now();
            program(self, units)?;
            self.barrier()?;
            took = begun.elapsed();
            if round == 0 {
                let wanted = few as f64 * lasts.as_secs_f64() / took.as_secs_f64();
                units = (wanted as u64).clamp(few, most);
            }
        }
        Ok(took.as_nanos() as f64 / units as f64)
    }

    fn update(&mut self, table_words: u64, count: u64) -> Result<()> {
        let procs = u64::from(self.procs);
        let mut number = mixed(u64::from(self.me));
        for _ in 0..count {
            number = number << 1 ^ if (number as i64) < 0 { 7 } else { 0 };
            let word = number & (table_words - 1);
            self.peer_xor_word((word % procs) as u32, word / procs, number)?;
        }
        self.peer_complete()
    }

    fn em3d(&mut self, edges: &[Edge], rounds: u64) -> Result<()> {
        for _ in 0..rounds {
            for kind in 0..2 {
                for node in 0..NODES {
                    let place = KEYS_AT + kind * NODES + node;
                    let mut value = f64::from_bits(self.own_word(place)?);
                    let first = ((kind * NODES + node) * DEGREE) as usize;
                    for edge in &edges[first..first + DEGREE as usize] {
                        let at = KEYS_AT + (1 - kind) * NODES + edge.at;
                        let other = match edge.proc == self.me {
                            true => self.own_word(at)?,
                            false => self.peer_read_word(edge.proc, at)?,
                        };
                        value -= edge.weight * f64::from_bits(other);
                    }
                    self.set_own_word(place, value.to_bits())?;
                }
                self.barrier()?;
            }
        }
        Ok(())
    }

    /// The same by this process alone; whether its own part is alike.
    fn is_em3d_right(&self, rounds: u64) -> Result<bool> {
        let procs = self.procs;
        let place = |proc: u32, kind: u64, node: u64| {
            ((u64::from(proc) * 2 + kind) * NODES + node) as usize
        };
        let mut values = vec![0.0; procs as usize * 2 * NODES as usize];
        for proc in 0..procs {
            for kind in 0..2 {
                for node in 0..NODES {
                    values[place(proc, kind, node)] = first_value(proc, kind, node);
                }
            }
        }
        for _ in 0..rounds {
            for kind in 0..2 {
                for proc in 0..procs {
                    for node in 0..NODES {
                        for number in 0..DEGREE {
                            let edge = edge_of(procs, proc, kind, node, number);
                            let other = values[place(edge.proc, 1 - kind, edge.at)];
                            values[place(proc, kind, node)] -= edge.weight * other;
                        }
                    }
                }
            }
        }
        for kind in 0..2 {
            for node in 0..NODES {
                let found = self.own_word(KEYS_AT + kind * NODES + node)?;
                if found != values[place(self.me, kind, node)].to_bits() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// So many keys of each process. Word 0: how many came; at process 0, words 1 and 2: the sums
    /// of all that were sent without those that came, and how many came to all.
    fn sort(&mut self, count: u64) -> Result<()> {
        for at in 0..3 {
            self.set_own_word(at, 0)?;
        }
        self.barrier()?;
        let mut sum = 0_u64;
        for number in 0..count {
            let key = mixed(number * u64::from(self.procs) + u64::from(self.me));
            let to = process_of(key, self.procs);
            let place = self.peer_add_word(to, 0, 1)?;
            ensure!(
                place < 2 * KEYS_MAX,
                "a process has more keys than it has room for"
            );
            self.peer_put_word(to, KEYS_AT + place, key)?;
            sum = sum.wrapping_add(key);
        }
        self.peer_complete()?;
        self.barrier()?;
        let own = self.own_word(0)?;
        let mut keys = Vec::with_capacity(own as usize);
        for at in 0..own {
            keys.push(self.own_word(KEYS_AT + at)?);
        }
        keys.sort_unstable();
        for key in keys {
            ensure!(
                process_of(key, self.procs) == self.me,
                "a key came to the wrong process"
            );
            sum = sum.wrapping_sub(key);
        }
        self.peer_add_word(0, 1, sum)?;
        self.peer_add_word(0, 2, own)?;
        self.barrier()?;
        if self.me == 0 {
            let all = count * u64::from(self.procs);
            ensure!(
                self.own_word(1)? == 0 && self.own_word(2)? == all,
                "a key was lost"
            );
        }
        Ok(())
    }

    pub(crate) fn programs(&mut self, lasts: Duration) -> Result<()> {
        let (me, procs) = (self.me, self.procs);
        let print = |name: &str, size: u64, ns: f64| {
            if me == 0 {
                println!("{name} {size} {ns:.3}");
            }
        };
        for table_bytes in TABLES_BYTES {
            let words = table_bytes / 8;
            // The same updates again undo themselves.
            let unit_ns = self.measured(500, 10_000_000, lasts, |process, count| {
                process.update(words, count)?;
                process.barrier()?;
                process.update(words, count)
            })?;
            for at in 0..words / u64::from(procs) {
                ensure!(self.own_word(at)? == 0, "an update was lost, or made twice");
            }
            print("updates", table_bytes, unit_ns / 2.0 / f64::from(procs));
            self.barrier()?;
        }
        let mut edges = Vec::new();
        for kind in 0..2 {
            for node in 0..NODES {
                let value = first_value(me, kind, node).to_bits();
                self.set_own_word(KEYS_AT + kind * NODES + node, value)?;
                edges.extend((0..DEGREE).map(|number| edge_of(procs, me, kind, node, number)));
            }
        }
        let mut rounds = 0;
        let unit_ns = self.measured(1, 2_000, lasts, |process, units| {
            rounds += units;
            process.em3d(&edges, units)
        })?;
        ensure!(
            self.is_em3d_right(rounds)?,
            "em3d has other values than a serial run"
        );
        let edges_of_all = (2 * NODES * DEGREE) as f64 * f64::from(procs);
        print("em3d", 8, unit_ns / edges_of_all);
        self.barrier()?;
        let unit_ns = self.measured(500, KEYS_MAX, lasts, |process, count| process.sort(count))?;
        print("sort", 8, unit_ns / f64::from(procs));
        self.barrier()
    }
}
