//! One-sided operations: what a blocking read takes over two raw hand-offs of a line, and how many
//! changes of one word several processes make a second.
//!
//! *A read* is over the raw hand-off in both directions of the same seconds: a request cannot be
//! faster than the line that brings it, nor an answer. The target attends, which is to poll without
//! a pause, or computes, which is not to call the library at all: then its network processor
//! answers. A *direct* read is a load in memory that the target shares.
//!
//! *Changes* are additions to one word: by packets, which an attentive target takes; direct, with
//! locked instructions through the same calls; and plain, by nothing but `lock xadd` in memory that
//! all share.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use hamlyn::engine::slot::Rights;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::one_sided::{Atomic, Change, Initiator, InitiatorOptions, OperationError, Width};
use hamlyn::region::SharedOptions;
use hamlyn::{
    Access, Area, Holders, Manager, ManagerOptions, NewSlot, Region, RegionTicket, Slot, Strategy,
    Ticket, Wait,
};
use indicatif::ProgressBar;
use plotters::prelude::SeriesLabelPosition;
use serde::{Deserialize, Serialize};

use super::Effort;
use super::latency::beside_raw;
use super::pair::{Order, Pair};
use super::pictures::{Curve, Picture};
use super::raw::{Ground, HandOff};
use super::report::Report;
use crate::Role;
use hamlyn_cli::actor::{Actor, answer, from_hex, to_hex};

/// Bytes that are read at a time.
const LENGTHS_BYTES: [usize; 6] = [4, 8, 16, 64, 256, 4096];
/// Processes that change one word.
const CHANGERS: [usize; 4] = [1, 2, 4, 8];
const AREA_BYTES: u64 = 16 * 4096;
/// Where in the memory is what is read, and the word that is changed. At its beginning is the word
/// at which the target sees that the measurement is over.
const READ_AT: u64 = 4096;
const CHANGED_AT: u64 = 2 * 4096;
/// Changes by packets that each process has under way.
const OUTSTANDING: usize = 16;
const WAIT: Wait = Wait::millis(20_000);
/// Lines of the ground: at which all begin, and which all change.
const START_LINE: u64 = 40;
const PLAIN_LINE: u64 = 42;

/// Kinds of measurement.
pub(crate) const STEPS: u64 = 2 + 3 + CHANGERS.len() as u64;

/// How the word is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Way {
    Packets,
    Direct,
    Plain,
}

/// One kind of read.
#[derive(Serialize)]
pub(crate) struct Read {
    pub(crate) strategy: &'static str,
    pub(crate) target: &'static str,
    pub(crate) way: &'static str,
    pub(crate) length_bytes: usize,
    pub(crate) read_ns: f64,
    pub(crate) over_two_hand_offs: f64,
}

/// Changes of one word by so many processes.
#[derive(Serialize)]
pub(crate) struct Changes {
    pub(crate) processes: usize,
    pub(crate) by_packets_per_s: f64,
    pub(crate) direct_per_s: f64,
    pub(crate) plain_per_s: f64,
    pub(crate) direct_over_plain: f64,
}

#[derive(Default, Serialize)]
pub(crate) struct Figures {
    pub(crate) reads: Vec<Read>,
    pub(crate) changes: Vec<Changes>,
}

pub(crate) fn measure(
    pair: &mut Pair,
    processors: &[usize],
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    let mut figures = Figures::default();
    {
        let (packets, direct) = open(pair)?;
        for (mut initiator, way) in [(packets, "packets"), (direct, "direct")] {
            for length_bytes in LENGTHS_BYTES {
                let took = read(pair, &mut initiator, length_bytes, true, effort)?;
                figures.reads.push(Read {
                    strategy: Strategy::Proc.name(),
                    target: "attends",
                    way,
                    length_bytes,
                    read_ns: took.0,
                    over_two_hand_offs: took.1,
                });
            }
            bar.inc(1);
        }
    }
    // With a network processor on each side, a request may take a wake-up or two.
    let slower = Effort {
        round_trips: effort.round_trips / 10,
        batches: effort.batches / 3,
        ..effort
    };
    for strategy in [Strategy::Np, Strategy::Inject, Strategy::Receive] {
        let mut driven = Pair::start_driven(strategy, processors)?;
        let (mut packets, direct) = open(&mut driven)?;
        drop(direct);
        for (attends, target) in [(true, "attends"), (false, "computes")] {
            for length_bytes in LENGTHS_BYTES {
                let took = read(&mut driven, &mut packets, length_bytes, attends, slower)?;
                figures.reads.push(Read {
                    strategy: strategy.name(),
                    target,
                    way: "packets",
                    length_bytes,
                    read_ns: took.0,
                    over_two_hand_offs: took.1,
                });
            }
        }
        drop(packets);
        driven.finish()?;
        bar.inc(1);
    }
    for processes in CHANGERS {
        figures
            .changes
            .push(changes(processes, processors, effort)?);
        bar.inc(1);
    }
    report.one_sided = Some(figures);
    Ok(())
}

/// Memory that a process shares with others.
pub(crate) struct Memory {
    area: Area,
    slot: Slot,
    /// Over the same memory, which is not shared by way of it.
    packets: Slot,
    region: Region,
    turn: u64,
}

impl Memory {
    pub(crate) fn open(manager: &Manager<ProcessHost>) -> Result<Self> {
        let area = Area::shared(SharedOptions::sparse(AREA_BYTES))?;
        let mut interface = manager.session();
        let slot = interface.open_slot(NewSlot::new(&area).rights(Rights::ALL))?;
        let packets = interface.open_slot(NewSlot::new(&area).rights(Rights::ALL))?;
        let all = 0..AREA_BYTES;
        let region = interface.share(&slot, all, Access::Writable, Holders::Linked)?;
        for at in (0..AREA_BYTES).step_by(8) {
            area.store_u64(at, if at < READ_AT { 0 } else { at })?;
        }
        area.store_u64(CHANGED_AT, 0)?;
        Ok(Self {
            area,
            slot,
            packets,
            region,
            turn: 0,
        })
    }

    /// The ways in which others reach it: by mapping it, and by packets.
    pub(crate) fn tickets(&self) -> Result<(String, String)> {
        let packets = self.packets.fast_ticket(0, AREA_BYTES)?;
        let region = self.region.ticket();
        Ok((to_hex(&region.to_bytes()), to_hex(&packets.to_bytes())))
    }

    /// Until an initiator says that it is done: polls, or computes.
    pub(crate) fn serve(&mut self, manager: &Manager<ProcessHost>, attends: bool) -> Result<()> {
        self.turn += 1;
        answer(&self.turn)?;
        let mut interface = manager.session();
        while self.area.load_u64(0)? != self.turn {
            if attends {
                interface.poll();
            } else {
                std::hint::spin_loop();
            }
        }
        answer(&())
    }

    pub(crate) fn close(self, manager: &Manager<ProcessHost>) -> Result<()> {
        manager.session().close_slot(self.slot)?;
        manager.session().close_slot(self.packets)?;
        Ok(())
    }
}

/// Initiators on the other process's memory: one that sends packets, and one that has it mapped.
fn open(pair: &mut Pair) -> Result<(Initiator, Initiator)> {
    pair.actor.order(&Order::ShareMemory)?;
    let (region, packets): (String, String) = pair.actor.answer()?;
    let region = RegionTicket::from_bytes(&from_hex(&region)?)?;
    let packets = Ticket::from_bytes(&from_hex(&packets)?)?;
    let mut interface = pair.manager.session();
    let options = InitiatorOptions::default();
    let target = interface.target(&packets, WAIT)?;
    let packets = interface.open_initiator(target, options)?;
    let target = interface.target(&region.ticket, WAIT)?;
    interface.attach(&region, WAIT)?;
    let direct = interface.open_initiator(target, options)?;
    ensure!(
        packets.window().is_none() && direct.window().is_some(),
        "one of two initiators operates in memory"
    );
    Ok((packets, direct))
}

/// Reads again and again; nanoseconds, and over two hand-offs.
fn read(
    pair: &mut Pair,
    initiator: &mut Initiator,
    length_bytes: usize,
    attends: bool,
    effort: Effort,
) -> Result<(f64, f64)> {
    let reads = effort.round_trips;
    let mut bytes = vec![0; length_bytes];
    let figures = beside_raw(pair, &[HandOff::LINE], effort, |pair| {
        pair.actor.order(&Order::ServeMemory { attends })?;
        let turn: u64 = pair.actor.answer()?;
        let mut interface = pair.manager.session();
        let start = Instant::now();
        for number in 0..reads {
            let at = READ_AT + number % 8 * 64;
            interface.read(initiator, at, &mut bytes, Wait::Forever)?;
            // A word says where it is, of which the first bytes are enough.
            let expected = at.to_le_bytes();
            ensure!(
                bytes
                    .iter()
                    .zip(expected)
                    .all(|(found, byte)| *found == byte),
                "a read brought something else"
            );
        }
        let elapsed = start.elapsed();
        interface.put(initiator, 0, &turn.to_le_bytes(), Wait::Forever)?;
        drop(interface);
        let () = pair.actor.answer()?;
        Ok(elapsed.as_nanos() as f64 / reads as f64 / 2.0)
    })?;
    Ok((2.0 * figures.one_way_ns, figures.over_raw))
}

/// What a process is to change.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ChangeOrder {
    pub(crate) way: Way,
    pub(crate) ticket: String,
    pub(crate) changes: u64,
    /// The number of this start, the same for all.
    pub(crate) start: u64,
}

/// Changes a second by each of the ways.
fn changes(processes: usize, processors: &[usize], effort: Effort) -> Result<Changes> {
    let manager = super::open()?;
    let memory = Memory::open(&manager)?;
    let ground = Ground::create()?;
    let elsewhere = &processors[1..];
    let mut actors = Vec::new();
    for number in 0..processes {
        let mut actor = Actor::start(Role::Bench, None)?;
        actor.order(&Order::Settle {
            processor: elsewhere[number % elsewhere.len()],
            ground: ground.path(),
            driven: None,
        })?;
        let () = actor.answer()?;
        actors.push(actor);
    }
    let mut expected = 0;
    let mut start = 0;
    let mut rate = |way: Way, all: u64| -> Result<f64> {
        start += 1;
        let order = ChangeOrder {
            way,
            ticket: memory.tickets()?.0,
            changes: (all / processes as u64).max(1),
            start,
        };
        for actor in &mut actors {
            actor.order(&Order::ChangeWord {
                order: order.clone(),
            })?;
        }
        let mut interface = manager.session();
        // They are ready when each has counted itself in.
        while ground.word(START_LINE, 1).load(Acquire) != start * processes as u64 {
            interface.poll();
        }
        let begun = Instant::now();
        ground.word(START_LINE, 0).store(start, Release);
        let changed = order.changes * processes as u64;
        expected += match way {
            Way::Plain => 0,
            _ => changed,
        };
        // They are done when each has counted itself out.
        while ground.word(START_LINE, 2).load(Acquire) != start * processes as u64 {
            match way {
                Way::Packets => _ = interface.poll(),
                _ => std::hint::spin_loop(),
            }
        }
        let elapsed = begun.elapsed();
        drop(interface);
        for actor in &mut actors {
            let () = actor.answer()?;
        }
        Ok(changed as f64 / elapsed.as_secs_f64())
    };
    let by_packets_per_s = rate(Way::Packets, effort.messages / 20)?;
    let direct_per_s = rate(Way::Direct, effort.messages)?;
    let plain_per_s = rate(Way::Plain, effort.messages)?;
    ensure!(
        memory.area.load_u64(CHANGED_AT)? == expected,
        "a change was lost, or made twice"
    );
    for actor in actors {
        actor.finish()?;
    }
    memory.close(&manager)?;
    Ok(Changes {
        processes,
        by_packets_per_s,
        direct_per_s,
        plain_per_s,
        direct_over_plain: direct_per_s / plain_per_s,
    })
}

/// The other side of that: one of the processes that change the word.
pub(crate) fn change(
    manager: &mut Option<Manager<ProcessHost>>,
    ground: &Ground,
    order: &ChangeOrder,
) -> Result<()> {
    // More processes than processors: they must sleep when they wait.
    if manager.is_none() {
        let options = Options::default().in_namespace("bench");
        *manager = Some(hamlyn::open_with(options, ManagerOptions::default())?);
    }
    let manager = manager.as_ref().context("it was opened")?;
    let mut interface = manager.session();
    let ticket = RegionTicket::from_bytes(&from_hex(&order.ticket)?)?;
    let target = interface.target(&ticket.ticket, WAIT)?;
    if order.way == Way::Direct {
        interface.attach(&ticket, WAIT)?;
    }
    let mut initiator = interface.open_initiator(target, InitiatorOptions::default())?;
    ground.word(START_LINE, 1).fetch_add(1, Release);
    while ground.word(START_LINE, 0).load(Acquire) != order.start {
        std::thread::yield_now();
    }
    match order.way {
        Way::Plain => {
            let word = ground.word(PLAIN_LINE, 0);
            for _ in 0..order.changes {
                word.fetch_add(1, Relaxed);
            }
        }
        Way::Direct => {
            for _ in 0..order.changes {
                interface.change(&mut initiator, CHANGED_AT, Change::Add, 1, Wait::Forever)?;
            }
        }
        Way::Packets => {
            let add = Atomic::new(Change::Add, Width::Bits64, 1);
            let mut begun = std::collections::VecDeque::with_capacity(OUTSTANDING);
            for _ in 0..order.changes {
                if begun.len() == OUTSTANDING
                    && let Some(first) = begun.pop_front()
                {
                    interface.finish(&mut initiator, first, Wait::Forever)?;
                }
                begun.push_back(interface.begin_atomic(
                    &mut initiator,
                    CHANGED_AT,
                    add,
                    Wait::Forever,
                )?);
            }
            let finished: Result<(), OperationError> =
                interface.finish_all(&mut initiator, Wait::Forever);
            finished?;
        }
    }
    ground.word(START_LINE, 2).fetch_add(1, Release);
    drop(interface);
    drop(initiator);
    answer(&())
}

/// What a read takes, by length.
pub(super) fn picture(figures: &Figures) -> Picture<'static> {
    let mut curves: Vec<Curve> = Vec::new();
    for read in &figures.reads {
        let label = format!("{}, {}, {}", read.strategy, read.way, read.target);
        let point = (read.length_bytes, read.read_ns);
        match curves.iter_mut().find(|curve| curve.label == label) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve {
                label,
                is_machine: false,
                points: vec![point],
            }),
        }
    }
    let two_hand_offs = |read: &Read| (read.length_bytes, read.read_ns / read.over_two_hand_offs);
    let raw = figures.reads.iter().take(LENGTHS_BYTES.len());
    curves.push(Curve {
        label: "two raw hand-offs of a line".to_owned(),
        is_machine: true,
        points: raw.map(two_hand_offs).collect(),
    });
    Picture {
        file: "one-sided-reads.svg",
        title: "Blocking one-sided reads (less is better)",
        unit: "ns",
        across: "bytes read",
        corner: SeriesLabelPosition::UpperLeft,
        curves,
    }
}

/// Additions to one word a second, by processes that make them.
pub(super) fn picture_of_changes(figures: &Figures) -> Picture<'static> {
    let curve = |label: &str, is_machine, rate: fn(&Changes) -> f64| {
        let changes = figures.changes.iter();
        Curve {
            label: label.to_owned(),
            is_machine,
            points: changes.map(|it| (it.processes, rate(it) / 1e6)).collect(),
        }
    };
    Picture {
        file: "one-sided-changes.svg",
        title: "Additions to one word (more is better)",
        unit: "million a second",
        across: "processes",
        corner: SeriesLabelPosition::UpperRight,
        curves: vec![
            curve("by packets", false, |it| it.by_packets_per_s),
            curve("direct", false, |it| it.direct_per_s),
            curve("lock xadd", true, |it| it.plain_per_s),
        ],
    }
}

pub(crate) fn print(figures: &Figures) {
    let columns = [
        "strategy",
        "target",
        "way",
        "bytes",
        "ns",
        "over two hand-offs",
    ];
    let mut table = hamlyn_cli::terminal::table(&columns);
    for read in &figures.reads {
        table.add_row([
            read.strategy.to_owned(),
            read.target.to_owned(),
            read.way.to_owned(),
            read.length_bytes.to_string(),
            format!("{:.0}", read.read_ns),
            format!("{:.2}", read.over_two_hand_offs),
        ]);
    }
    println!("How long does a blocking one-sided read take?\n{table}");
    let columns = [
        "processes",
        "by packets, million/s",
        "direct, million/s",
        "lock xadd, million/s",
        "direct over lock xadd",
    ];
    let mut table = hamlyn_cli::terminal::table(&columns);
    let million = |rate: f64| format!("{:.2}", rate / 1e6);
    for changes in &figures.changes {
        table.add_row([
            changes.processes.to_string(),
            million(changes.by_packets_per_s),
            million(changes.direct_per_s),
            million(changes.plain_per_s),
            format!("{:.2}", changes.direct_over_plain),
        ]);
    }
    println!("How many additions to one word are made a second?\n{table}");
}
