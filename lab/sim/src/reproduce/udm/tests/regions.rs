//! Programs over regions: what they compute takes the time that it should, what they send is what
//! they need, and a message interrupts them.

use std::cell::Cell;
use std::collections::BTreeSet;

use hamlyn::Wait;
use hamlyn_crl::{Crl, CrlError, CrlNull, CrlOptions, Kind, RegionHandle, RegionId, Regions};
use hamlyn_programs::barnes::BarnesProblem;
use hamlyn_programs::lu::LuProblem;
use hamlyn_programs::water::WaterProblem;
use hamlyn_programs::{Marks, RegionProcessor, SharedProgram};

use super::*;
use crate::reproduce::udm::regions::{self, InterruptingCourier};

/// Small, with every kind of work in them.
pub(super) const TINY: [SharedProgram; 3] = [
    SharedProgram::Lu(LuProblem {
        size: 40,
        block: 10,
    }),
    SharedProgram::Water(WaterProblem {
        side: 2,
        steps: 3,
        step_ps: 0.0002,
    }),
    SharedProgram::Barnes(BarnesProblem {
        bodies: 32,
        steps: 3,
        theta: 1.0,
        softening: 0.05,
        step: 0.025,
    }),
];

/// Adds up the operations of a program.
#[derive(Default)]
struct Counting(Cell<u64>);

impl RegionProcessor<CrlNull> for Counting {
    fn compute(&self, _: &CrlNull, operations: u64) -> Result<(), CrlError> {
        self.0.set(self.0.get() + operations);
        Ok(())
    }
}

/// Operations of the part of a program that is measured.
fn operations_of(shared: SharedProgram) -> u64 {
    let (counting, all) = (Counting::default(), Cell::new(0));
    let marks = Marks {
        begin: &|| counting.0.set(0),
        end: &|| all.set(counting.0.get()),
    };
    let run = shared.run(&CrlNull::default(), &counting, &marks);
    assert!(!run.unwrap().is_empty());
    all.get()
}

fn even_fugu(nodes: usize) -> Fugu {
    Fugu {
        machine: Machines::paper().soft.with("work.spread", |_| 0.0).unwrap(),
        nodes,
        late: None,
        diverts_all: false,
        seed: 1,
    }
}

/// The cycles of a program alone on one node, where it sends nothing.
fn cycles_on_one(shared: SharedProgram, operation: u64) -> u64 {
    let run = even_fugu(1).run(Span::from_ns(operation), |group, processor| {
        let result = regions::run(shared, group, processor, Span::from_us(7))?;
        assert_eq!(result.bits, shared.serial()?);
        assert_eq!(result.sent.iter().sum::<u64>(), 0);
        Ok(())
    });
    run.unwrap().elapsed().as_ns()
}

/// Operations follow from the problem: those of a matrix of n rows; and of m molecules the pairs of
/// their atoms in the last iteration, and 15 for each molecule.
#[test]
fn a_program_takes_its_operations() {
    let [lu, water, barnes] = TINY;
    let n = 40;
    let expected = n * (n - 1) / 2 + n * (n - 1) * (2 * n - 1) / 6;
    assert_eq!(operations_of(lu), expected);
    let m = 8;
    assert_eq!(operations_of(water), m * (m - 1) / 2 * 9 + m * 15);
    // With theta of zero each body sees all others, and is spared no cell.
    let SharedProgram::Barnes(problem) = barnes else {
        panic!("{barnes:?}");
    };
    let theta = 0.0;
    let all_pairs = operations_of(SharedProgram::Barnes(BarnesProblem { theta, ..problem }));
    let bodies = problem.bodies as u64;
    assert!(all_pairs > bodies * bodies && all_pairs > operations_of(barnes));
    for shared in TINY {
        let operations = operations_of(shared);
        assert_eq!(cycles_on_one(shared, 5), 5 * operations, "{shared:?}");
    }
}

/// LU reads each block of another node once, by four messages; its barriers take 24 each.
#[test]
fn lu_sends_what_its_blocks_need() {
    let [lu, ..] = TINY;
    let outcome = outcome(Setting::new(Program::Shared(lu), Sharing::Alone, 1));
    let (blocks, rows, columns) = (4, 2, 4);
    let owner = |(row, column)| (row % rows) * columns + column % columns;
    let mut reads = BTreeSet::new();
    for step in 0..blocks {
        for at in step + 1..blocks {
            reads.insert((owner((at, step)), (step, step)));
            reads.insert((owner((step, at)), (step, step)));
            for column in step + 1..blocks {
                reads.insert((owner((at, column)), (at, step)));
                reads.insert((owner((at, column)), (step, column)));
            }
        }
    }
    reads.retain(|(node, block)| owner(*block) != *node);
    let sent = |kind: Kind| outcome.kinds[kind as usize];
    for kind in [Kind::Map, Kind::Mapped, Kind::Read, Kind::Shared] {
        assert_eq!(sent(kind), reads.len() as u64, "{kind:?}");
    }
    // Eight broadcasts, the last of which is a barrier; one when all is made, three for each step.
    assert_eq!(sent(Kind::Broadcast), 8 * 7);
    assert_eq!(sent(Kind::Barrier), 24 * (1 + 1 + 3 * blocks as u64));
    let by_kind: u64 = outcome.messages_by_kind().map(|(_, sent)| sent).sum();
    assert_eq!(by_kind, 4 * reads.len() as u64 + 8 * 7 + 24 * 14);
    assert_eq!(by_kind, outcome.messages);
}

/// Water reads each molecule of another node that it needs, and adds to it, once in an iteration:
/// two messages to read it, two to take the copies of before away, four to add.
#[test]
fn water_sends_what_its_molecules_need() {
    let [_, water, _] = TINY;
    let outcome = outcome(Setting::new(Program::Shared(water), Sharing::Alone, 1));
    // A node has one of the eight; the first four have four partners, the others three.
    let needed = 4 * 4 + 4 * 3;
    let sent = |kind: Kind| outcome.kinds[kind as usize];
    for kind in [
        Kind::Read,
        Kind::Shared,
        Kind::Invalidate,
        Kind::Acknowledge,
    ] {
        assert_eq!(sent(kind), needed, "{kind:?}");
    }
    assert_eq!(sent(Kind::Write), needed);
    assert_eq!(sent(Kind::Exclusive) + sent(Kind::Grant), needed);
    assert_eq!(sent(Kind::Pass) + sent(Kind::Recall), needed);
    assert_eq!(sent(Kind::Have) + sent(Kind::Flush), needed);
    let others = sent(Kind::Barrier) + sent(Kind::Gather);
    assert_eq!(outcome.messages, 8 * needed + others);
    // Three barriers and a sum.
    assert_eq!(others, 4 * 24);
}

/// The library's work for a message is in each handler, and nothing of the program's is.
#[test]
fn the_librarys_work_is_in_handlers() {
    let [lu, ..] = TINY;
    let setting = Setting::new(Program::Shared(lu), Sharing::Alone, 1);
    let handler = |path, value| {
        let soft = Machines::paper().soft.with(path, |_| value).unwrap();
        let machines = Machines {
            soft,
            ..Machines::paper()
        };
        setting.measure(&machines).unwrap().handler
    };
    let before = handler("work.operation.crl", 100.0);
    let after = handler("work.operation.crl", 150.0);
    assert!((after - before - 50.0).abs() < 0.1, "{before} {after}");
    // An interrupt with four words at least.
    assert!(before > 100.0 + 115.0 + 8.0, "{before}");
    let slower = handler("work.operation.lu", 50.0);
    let faster = handler("work.operation.lu", 10.0);
    assert!((slower - faster).abs() < 1.0, "{slower} {faster}");
}

/// Only the last iteration is measured, so more of them do not matter.
#[test]
fn the_last_iteration_is_measured() {
    let [_, water, _] = TINY;
    let SharedProgram::Water(problem) = water else {
        panic!("{water:?}");
    };
    let measured = |steps| {
        let shared = SharedProgram::Water(WaterProblem { steps, ..problem });
        outcome(Setting::new(Program::Shared(shared), Sharing::Alone, 1))
    };
    let (three, six) = (measured(3), measured(6));
    assert!(three.messages > 100);
    let ratio = six.messages as f64 / three.messages as f64;
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    assert!((six.elapsed / three.elapsed - 1.0).abs() < 0.3);
}

/// A node that computes answers at once, and not when it has ended.
#[test]
fn a_message_interrupts_what_a_node_computes() {
    const CYCLES: u64 = 1_000_000;
    let run = even_fugu(2).run(Span::from_ns(1), |group, processor| {
        let courier = InterruptingCourier::open(group, processor, Span::from_ns(181))?;
        let crl = Crl::open(courier, CrlOptions::default())?;
        let mut name = [0; 8];
        let took = if crl.me() == 1 {
            name = crl.create(8)?.to_u64().to_le_bytes();
            crl.broadcast(&name)?;
            crl.barrier()?;
            let began = world::now();
            RegionProcessor::compute(processor, &crl, CYCLES)?;
            world::now().since(began)
        } else {
            crl.receive_broadcast(&mut name)?;
            crl.barrier()?;
            world::pause(Span::from_ns(CYCLES / 2));
            let began = world::now();
            let region = crl.map(RegionId::from_u64(u64::from_le_bytes(name)))?;
            drop(region.read()?);
            world::now().since(began)
        };
        crl.finish(Wait::Forever)?;
        Ok(took)
    });
    let run = run.unwrap();
    let (read, computed) = (run.nodes[0].result, run.nodes[1].result);
    assert!(read < Span::from_ns(3_000), "{read:?}");
    // Three messages of four words, the last of which asks for no answer: the other node has ended.
    // The answers have four words, and seven with the bytes and the number of words before them.
    let three = 3 * (115 + 4 * 2 + 181) + (7 + 4 * 3) + (7 + 7 * 3);
    assert_eq!(computed.as_ns(), CYCLES + three);
}

/// Programs with regions are slowed down by skew, and their messages go through buffers then.
#[test]
fn skew_slows_shared_programs_down() {
    let [lu, water, barnes] = QUICK.shared();
    for program in [lu, water, barnes] {
        let at = |skew| BENCH.buffered(program, skew).unwrap();
        assert!(at(200) > at(0) && at(200) < 0.1, "{program:?}: {}", at(200));
    }
    let slower = BENCH.slowdown(lu, 200).unwrap();
    assert!((1.01..1.3).contains(&slower), "{slower}");
    let all = Setting::new(Program::Shared(TINY[0]), Sharing::AllBuffered, 1);
    assert_eq!(outcome(all).buffered, 1.0);
}
