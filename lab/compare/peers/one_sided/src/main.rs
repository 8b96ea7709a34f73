//! Hamlyn's one-sided operations, measured as `peers/harness/one_sided.h` says: by packets
//! (`packets`), or in memory that its owner shares (`exported`). The processes are described
//! in their environment as those of a Split-C job are.

mod programs;

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hamlyn::engine::slot::Rights;
use hamlyn::host::process::Options;
use hamlyn::host::process::ProcessHost;
use hamlyn::host::{Address, Supply};
use hamlyn::one_sided::{Atomic, Change, Initiator, InitiatorOptions, Width};
use hamlyn::region::SharedOptions;
use hamlyn::{Access, Area, Holders, Manager, ManagerOptions, NewSlot, RegionTicket, Ticket, Wait};

const BYTES_MAX: usize = 65_536;
/// Of the words that all use, in the memory of process 0.
const SUM: u64 = BYTES_MAX as u64;
const ENTERED: u64 = SUM + 64;
const BROADCAST: u64 = SUM + 128;
/// Of the words of the programs.
const WORDS_AT: u64 = SUM + 4096;
/// Whole pages, as regions are.
const MEMORY_BYTES: u64 = (WORDS_AT + 8 * programs::WORDS).next_multiple_of(4096);
const SIZES: [usize; 5] = [4, 8, 64, 1024, BYTES_MAX];
/// Operations of a stream that are outstanding at a time.
const WINDOW: u64 = 64;
const LONG: Wait = Wait::millis(60_000);
const ITEM: &str = "memory";

/// A process of the job.
struct Process {
    manager: Manager,
    me: u32,
    procs: u32,
    /// Its own memory; and whether that is shared: then nothing is asked of it by packets.
    area: Area,
    is_exported: bool,
    /// All processes, itself included.
    peers: Vec<Initiator>,
    barriers: u64,
    from: Vec<u8>,
    into: Vec<u8>,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, variant, milliseconds] = &arguments[..] else {
        bail!("usage: compare-one-sided packets|exported MILLISECONDS");
    };
    let lasts = Duration::from_secs_f64(milliseconds.parse::<f64>()? / 1e3);
    let mut process = Process::open(variant == "exported")?;
    process.barrier()?;
    if process.procs == 2 {
        for size in SIZES {
            if process.me == 0 {
                process.figures(size, lasts)?;
            }
            process.barrier()?;
        }
    }
    process.additions(lasts)?;
    process.programs(lasts)?;
    process.end()
}

fn variable(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| format!("{name} is not set"))
}

impl Process {
    fn open(is_exported: bool) -> Result<Self> {
        let job = variable("HAMLYN_JOB")?;
        let me: u32 = variable("HAMLYN_RANK")?.parse()?;
        let procs: u32 = variable("HAMLYN_PROCS")?.parse()?;
        let name = |proc: u32| format!("one-sided.{job}.{proc}");
        let host = ProcessHost::open(Options::named(&name(me)))?;
        let manager = Manager::new(host, ManagerOptions::default())?;
        let mut interface = manager.session();
        let area = match is_exported {
            true => Area::shared(SharedOptions::sparse(MEMORY_BYTES))?,
            false => interface.allocate(MEMORY_BYTES)?,
        };
        let slot = interface.open_slot(NewSlot::new(&area).rights(Rights::ALL))?;
        let bytes = match is_exported {
            true => {
                let all = 0..MEMORY_BYTES;
                let region = interface.share(&slot, all, Access::Writable, Holders::Linked)?;
                region.ticket().to_bytes().to_vec()
            }
            false => slot.fast_ticket(0, MEMORY_BYTES)?.to_bytes().to_vec(),
        };
        interface.offer(ITEM, Supply::Always, &bytes)?;
        // It lasts as long as the process.
        std::mem::forget(slot);
        let mut initiator = |proc: u32| -> Result<Initiator> {
            let bytes = interface.ask(Address::Name(&name(proc)), ITEM, LONG)?;
            let ticket = match is_exported {
                true => {
                    let region = RegionTicket::from_bytes(&bytes)?;
                    interface.target(&region.ticket, LONG)?;
                    if proc != me {
                        interface.attach(&region, LONG)?;
                    }
                    region.ticket
                }
                false => Ticket::from_bytes(&bytes)?,
            };
            let target = interface.target(&ticket, LONG)?;
            let landing_bytes = BYTES_MAX as u64;
            Ok(interface.open_initiator(target, InitiatorOptions { landing_bytes })?)
        };
        let peers = (0..procs).map(&mut initiator).collect::<Result<_>>()?;
        drop(interface);
        Ok(Self {
            manager,
            me,
            procs,
            area,
            is_exported,
            peers,
            barriers: 0,
            into: vec![0; BYTES_MAX],
            from: (0..BYTES_MAX).map(|at| (at * 7 + 1) as u8).collect(),
        })
    }

    fn change_first(&mut self, at: u64, operand: u64) -> Result<u64> {
        if self.me == 0 && self.is_exported {
            let atomic = Atomic::new(Change::Add, Width::Bits64, operand);
            return Ok(self.area.change_at(at, &atomic)?);
        }
        let (interface, first) = (&mut self.manager.session(), &mut self.peers[0]);
        Ok(interface.change(first, at, Change::Add, operand, LONG)?)
    }

    fn look_at_first(&mut self, at: u64) -> Result<u64> {
        if self.me == 0 && self.is_exported {
            return Ok(self.area.load_u64(at)?);
        }
        Ok(self
            .manager
            .session()
            .read_word(&mut self.peers[0], at, LONG)?)
    }

    /// Enters for the last time. Process 0 stays until all have; they ask nothing more of it.
    fn end(mut self) -> Result<()> {
        self.change_first(ENTERED, 1)?;
        let all = (self.barriers + 1) * u64::from(self.procs);
        while self.me == 0 && self.look_at_first(ENTERED)? < all {
            self.manager.session().poll();
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Enters, and looks until all have. Those who look serve what the others ask for.
    fn barrier(&mut self) -> Result<()> {
        self.barriers += 1;
        self.change_first(ENTERED, 1)?;
        let all = self.barriers * u64::from(self.procs);
        while self.look_at_first(ENTERED)? < all {
            self.manager.session().poll();
            if self.procs > 2 {
                // There may be fewer cores.
                std::thread::yield_now();
            }
        }
        // So that answers to those who look last are sent.
        for _ in 0..16 {
            self.manager.session().poll();
        }
        Ok(())
    }

    fn broadcast(&mut self, value: u64) -> Result<u64> {
        if self.me == 0 {
            self.area.store_u64(BROADCAST, value)?;
        }
        self.barrier()?;
        let value = self.look_at_first(BROADCAST)?;
        self.barrier()?;
        Ok(value)
    }

    fn read(&mut self, size: usize) -> Result<()> {
        let (interface, second) = (
            &mut self.manager.session(),
            self.peers.get_mut(1).context("alone")?,
        );
        let into = &mut self.into[..size];
        interface.read(second, 0, into, LONG)?;
        black_box(into);
        Ok(())
    }

    fn write(&mut self, size: usize) -> Result<()> {
        let (interface, second) = (
            &mut self.manager.session(),
            self.peers.get_mut(1).context("alone")?,
        );
        Ok(interface.put(second, 0, &self.from[..size], LONG)?)
    }

    fn stream(&mut self, size: usize, count: u64) -> Result<()> {
        let (interface, second) = (
            &mut self.manager.session(),
            self.peers.get_mut(1).context("alone")?,
        );
        if second.window().is_some() {
            // Each is complete when it returns.
            return (0..count)
                .try_for_each(|_| Ok(interface.put(second, 0, &self.from[..size], LONG)?));
        }
        let mut left = count;
        while left > 0 {
            // Half of what may be outstanding is awaited at a time.
            let window = left.min(WINDOW);
            for _ in 0..window {
                let _ = interface.begin_put(second, 0, &self.from[..size], LONG)?;
            }
            interface.finish_all(second, LONG)?;
            left -= window;
        }
        Ok(())
    }

    fn figures(&mut self, size: usize, lasts: Duration) -> Result<()> {
        figure("write", size, lasts, |count| {
            (0..count).try_for_each(|_| self.write(size))
        })?;
        figure("read", size, lasts, |count| {
            (0..count).try_for_each(|_| self.read(size))
        })?;
        ensure!(
            self.into[..size] == self.from[..size],
            "what was read is not what was written"
        );
        figure("stream", size, lasts, |count| self.stream(size, count))
    }

    fn additions(&mut self, lasts: Duration) -> Result<()> {
        let (mut count, mut all, mut is_last) = (64, 0, false);
        loop {
            count = self.broadcast(count)?;
            self.barrier()?;
            let begun = Instant::now();
            for _ in 0..count {
                self.change_first(SUM, 1)?;
            }
            self.barrier()?;
            let took = begun.elapsed();
            all += count * u64::from(self.procs);
            ensure!(self.change_first(SUM, 0)? == all, "an addition was lost");
            // The clock of process 0 decides.
            let ends = self.broadcast(u64::from(is_last))? == 1;
            if ends {
                if self.me == 0 {
                    let operations = (count * u64::from(self.procs)) as f64;
                    println!("add 8 {:.3}", took.as_nanos() as f64 / operations);
                }
                return Ok(());
            }
            is_last = took >= lasts / 4;
            let scale = match is_last {
                true => lasts.as_secs_f64() / took.as_secs_f64(),
                false => 2.0,
            };
            count = (count as f64 * scale) as u64 + 1;
        }
    }
}

fn figure(
    name: &str,
    size: usize,
    lasts: Duration,
    mut operate: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    let mut timed = |count| -> Result<Duration> {
        let begun = Instant::now();
        operate(count)?;
        Ok(begun.elapsed())
    };
    let mut count = WINDOW;
    let mut took = timed(count)?;
    while took < lasts / 8 {
        count *= 2;
        took = timed(count)?;
    }
    count = (count as f64 * lasts.as_secs_f64() / took.as_secs_f64()) as u64 + 1;
    took = timed(count)?;
    println!("{name} {size} {:.3}", took.as_nanos() as f64 / count as f64);
    Ok(())
}
