//! A tenth of the reproduction: Tables 4 and 5 exactly, Table 6 and points of Figures 7 to 10, and
//! changes that must change the answers. `hamlyn-lab reproduce udm` measures all of it.

use std::sync::LazyLock;

use hamlyn_programs::Processor as _;
use hamlyn_udm::Udm;

use super::bench::{BUFFERED, Column, Program, Setting, Sharing, slower_synth, synth};
use super::fugu::{Fugu, options};
use super::*;
use crate::machine::Machine;
use crate::reproduce::report::{Entry, FigureVerdict};
use crate::time::{Span, Time};
use crate::world;

const QUICK: Extent = Extent { is_quick: true };

fn settings() -> Vec<Setting> {
    let programs = [QUICK.barriers(), QUICK.puzzle()];
    let alone = programs.map(|program| Setting::new(program, Sharing::Alone, 1));
    let mut settings = alone.to_vec();
    for (_, program) in QUICK.named() {
        for skew in [0, 100, 200] {
            settings.push(Setting::new(program, Sharing::Skewed(skew), 1));
        }
        settings.push(Setting::new(program, Sharing::Alone, 1));
    }
    settings
}

static BENCH: LazyLock<Bench> =
    LazyLock::new(|| Bench::measure(&Machines::paper(), QUICK, &settings(), || {}).unwrap());

/// Rows of single messages.
const COSTS: [&str; 10] = [
    "T-113", "T-114", "T-115", "T-116", "T-156", "T-157", "T-159", "T-160", "T-237", "T-243",
];

fn report_on(rows: &[&str]) -> Report {
    report_of(&Machines::paper(), &BENCH, |id| rows.contains(&id)).unwrap()
}

fn entry(id: &str) -> Entry {
    report_on(&[id]).entry(id).unwrap().clone()
}

fn outcome(setting: Setting) -> bench::Outcome {
    setting.measure(&Machines::paper()).unwrap()
}

/// Every cycle that is missing is a point that the layer does not pass.
#[test]
fn tables_4_and_5_come_out_to_the_cycle() {
    for entry in report_on(&COSTS).entries {
        assert!(!entry.figures.is_empty());
        for figure in entry.figures {
            let digits = if figure.unit == "times" { 0.005 } else { 0.0 };
            let off = (figure.ours - figure.paper).abs();
            assert!(off <= digits, "{}: {figure:?}", entry.id);
        }
    }
}

/// The paper's arithmetic on its tables, with what comes out here.
#[test]
fn sums_of_the_tables_agree() {
    let cost = |column, has_words| BENCH.cost(column, has_words).unwrap();
    let cycles = |span: Span| span.as_ps() as f64 / 1e3;
    let [kernel, hard, soft] =
        [Column::Kernel, Column::Hard, Column::Soft].map(|column| cost(column, false));
    let interrupt = |costs: costs::Costs| cycles(costs.interrupt);
    assert_eq!(interrupt(hard) - interrupt(kernel), 33.0);
    assert_eq!(interrupt(soft) - interrupt(hard), 28.0);
    assert_eq!(interrupt(hard) - cycles(hard.entry), 33.0);
    assert_eq!(interrupt(hard) / cycles(hard.polling), 87.0 / 9.0);
    let buffered = cycles(soft.insertion + soft.extraction);
    assert_eq!((buffered, buffered - interrupt(hard)), (232.0, 145.0));
    assert_eq!(cycles(soft.insertion_with_page - soft.insertion), 2_982.0);
    let long = cost(Column::Hard, true);
    let slopes = [
        (hard.send, long.send, 3.0),
        (hard.interrupt, long.interrupt, 2.0),
        (hard.polling, long.polling, 2.0),
        (hard.extraction, long.extraction, 4.5),
        (hard.insertion, long.insertion, 0.0),
    ];
    for (short, long, slope) in slopes {
        assert_eq!(cycles(long - short), bench::WORDS * slope);
    }
    // A request's handler takes all of the time that is given for it (T-209, T-256).
    assert_eq!(
        interrupt(soft) + bench::STALL as f64 + cycles(soft.send),
        290.0
    );
    let barriers = BENCH
        .outcome(Setting::new(QUICK.barriers(), Sharing::Alone, 1))
        .unwrap();
    let in_a_slice = 500_000.0 / barriers.between();
    assert!((in_a_slice / 813.0 - 1.0).abs() < 0.02, "{in_a_slice}");
}

#[test]
fn few_pages_hold_what_is_buffered() {
    let skewed = BENCH
        .measured
        .iter()
        .filter(|(_, outcome)| outcome.buffered > 0.0);
    let pages: Vec<u64> = skewed.map(|(_, outcome)| outcome.pages_max).collect();
    assert!(pages.len() >= 12);
    assert!(
        pages.iter().all(|pages| (1..7).contains(pages)),
        "{pages:?}"
    );
}

/// A node computes so many cycles, and one message comes meanwhile: how long it takes, and the time
/// of insertions that it does not pay for.
fn computing(cycles: u64, sent_at: Time, late: Option<Vec<Span>>, diverts_all: bool) -> [u64; 2] {
    let fugu = Fugu {
        machine: Machines::paper().soft.with("work.spread", |_| 0.0).unwrap(),
        nodes: 2,
        late,
        diverts_all,
        seed: 1,
    };
    let run = fugu.run(Span::from_ns(1), |group, processor| {
        let mut udm = Udm::open(group, "computing", options(), (), options().wait)?;
        udm.on(0, |arrival| arrival.extract())?;
        if udm.me() == 0 {
            world::pause(sent_at.since(world::now()));
            udm.inject(1, 0, &[])?;
            return Ok(Span::ZERO);
        }
        let began = world::now();
        processor.compute(&mut udm, cycles)?;
        Ok(world::now().since(began))
    });
    let run = run.unwrap();
    let computed = &run.nodes[1];
    [computed.result, computed.delivered.inserted_elsewhere].map(Span::as_ns)
}

/// An interrupt or an insertion delays the program that has the processor, by what it takes, and
/// none that has not.
#[test]
fn whoever_has_the_processor_pays() {
    let soon = Time::from_ns(5_000);
    assert_eq!(computing(20_000, soon, None, false), [20_000 + 115, 0]);
    assert_eq!(
        computing(20_000, soon, None, true),
        [20_000 + 3_162 + 52, 0]
    );
    // The receiver has its processor from 250,000 to 750,000, and from 1,250,000 on.
    let late = Some(vec![Span::ZERO, Span::from_ns(250_000)]);
    let elsewhere = computing(600_000, Time::from_ns(1_050_000), late, false);
    assert_eq!(elsewhere, [1_100_000 + 52, 3_162]);
}

#[test]
fn programs_send_what_the_paper_counts() {
    let barriers = outcome(Setting::new(Program::Barrier(100), Sharing::Alone, 1));
    assert_eq!(barriers.messages, 2_400);
    // Positions and moves of the first eight moves, and the messages that end each of them.
    let puzzle = BENCH
        .outcome(Setting::new(QUICK.puzzle(), Sharing::Alone, 1))
        .unwrap();
    let moves = puzzle.counts.moves as f64;
    assert!(puzzle.counts.positions > 10_000);
    assert!(
        (puzzle.messages as f64 / (moves * 7.0 / 8.0) - 1.0).abs() < 0.02,
        "{puzzle:?}"
    );
}

#[test]
fn table_6_is_near() {
    let barriers = BENCH
        .outcome(Setting::new(QUICK.barriers(), Sharing::Alone, 1))
        .unwrap();
    assert!(
        (barriers.elapsed / 1.85e6 - 1.0).abs() < 0.02,
        "{barriers:?}"
    );
    let between = |setting| BENCH.outcome(setting).unwrap().between();
    let puzzle = between(Setting::new(QUICK.puzzle(), Sharing::Alone, 1));
    assert!((puzzle / 953.0 - 1.0).abs() < 0.1, "{puzzle}");
}

/// Of barrier about as many messages are buffered with twice the skew, of enum twice as many; and
/// barrier gets longer as its nodes meet less.
#[test]
fn skew_buffers_and_slows_down() {
    let [barrier, puzzle] = QUICK.programs();
    let share = |program, skew| BENCH.buffered(program, skew).unwrap();
    let of_barrier = share(barrier, 200) / share(barrier, 100);
    assert!((0.7..1.4).contains(&of_barrier), "{of_barrier}");
    let of_puzzle = share(puzzle, 200) / share(puzzle, 100);
    assert!((of_puzzle / 2.0 - 1.0).abs() < 0.1, "{of_puzzle}");
    let slower = |program| BENCH.slowdown(program, 200).unwrap();
    assert!(slower(puzzle) < 1.05 && slower(barrier) > 1.15);
    let twice = entry("T-199");
    let [of_barrier, of_puzzle, of_shared @ ..] = &twice.figures[..] else {
        panic!("{twice:?}");
    };
    for figure in [of_barrier, of_puzzle] {
        assert!((figure.ours - 2.0).abs() < 0.02, "{figure:?}");
    }
    // These have a few slices only.
    assert_eq!(of_shared.len(), 3);
    for figure in of_shared {
        assert!((figure.ours - 2.0).abs() < 0.1, "{figure:?}");
    }
    assert_eq!(twice.figures[0].verdict, FigureVerdict::PredictedHit);
}

/// The interval decides how much is buffered, and N, and what the buffered path costs.
#[test]
fn synth_buffers_as_its_settings_say() {
    let share = |setting| outcome(setting).buffered;
    let (fast, slow) = (share(synth(1_000, 50, 1)), share(synth(1_000, 700, 1)));
    assert!(fast > 5.0 * slow && slow < 0.02, "{fast} {slow}");
    assert!(share(synth(10, 50, 1)) < fast / 3.0);
    let (cheap, dear) = (
        slower_synth(1_000, BUFFERED[0], 1),
        slower_synth(1_000, 800, 1),
    );
    let (cheap, dear) = (share(cheap), share(dear));
    assert!(dear > 0.1 && dear > 5.0 * cheap, "{cheap} {dear}");
}

/// A handler costs what its column says, so a program on it does.
#[test]
fn columns_change_programs() {
    let elapsed = |column, sharing| {
        let setting = Setting::new(Program::Barrier(200), sharing, 1);
        outcome(Setting { column, ..setting }).elapsed
    };
    let alone = |column| elapsed(column, Sharing::Alone);
    assert!(alone(Column::Kernel) < alone(Column::Hard));
    assert!(alone(Column::Hard) < alone(Column::Soft));
    assert!(alone(Column::Soft) < elapsed(Column::Soft, Sharing::AllBuffered));
    let all = Setting::new(Program::Barrier(200), Sharing::AllBuffered, 1);
    assert_eq!(outcome(all).buffered, 1.0);
}

#[test]
fn a_seed_decides_all() {
    let setting = |seed| Setting::new(Program::Barrier(300), Sharing::Skewed(200), seed);
    assert_eq!(outcome(setting(1)), outcome(setting(1)));
    assert_ne!(outcome(setting(1)).elapsed, outcome(setting(2)).elapsed);
}

/// Only the timer differs between the two machines, and the work that is in one of them.
#[test]
fn soft_atomicity_is_the_timer() {
    let Machines { hard, soft } = Machines::paper();
    let (hard, soft) = (hard.numbers(), soft.numbers());
    let of_work = |path: &str| path.starts_with("work.");
    let differs = soft
        .iter()
        .filter(|number| !of_work(&number.path) && !hard.contains(number));
    let paths: Vec<&str> = differs.map(|number| number.path.as_str()).collect();
    assert_eq!(
        paths,
        ["at.interrupt.handler_ended.1", "at.interrupt.upcall.3"]
    );
}

#[test]
fn every_number_of_the_machines_has_a_part() {
    let settings = [
        Setting::new(Program::Barrier(40), Sharing::Alone, 1),
        Setting::new(Program::Barrier(400), Sharing::Skewed(300), 1),
        Setting::new(Program::Enum(5), Sharing::Skewed(300), 1),
        slower_synth(1_000, 800, 1),
    ]
    .into_iter()
    .chain(regions::TINY.map(|shared| {
        let program = Program::Shared(shared);
        Setting::new(program, Sharing::Alone, 1)
    }))
    .collect::<Vec<_>>();
    let measured = |machines: &Machines, machine: &Machine, all: bool| {
        let costs = [0, 14].map(|words| costs::measure(machine, words).unwrap());
        let settings = settings.iter().filter(|_| all);
        let outcomes: Vec<_> = settings
            .map(|setting| setting.measure(machines).unwrap())
            .collect();
        (costs, outcomes)
    };
    let paper = Machines::paper();
    let before = measured(&paper, &paper.soft, true);
    for number in paper.soft.numbers() {
        let changed = paper
            .soft
            .with(&number.path, |value| value * 2.0 + 1.0)
            .unwrap();
        let is_cheap = measured(&paper, &changed, false).0 != before.0;
        let machines = Machines {
            soft: changed.clone(),
            ..paper.clone()
        };
        let has_part = is_cheap || measured(&machines, &changed, true) != before;
        assert!(has_part, "{}", number.path);
    }
}

/// `docs/reproduce-udm.md` has the figures of these rows.
#[test]
fn the_document_says_what_is() {
    let document = include_str!("../../../../../docs/reproduce-udm.md");
    for entry in report_on(&COSTS).entries {
        for figure in &entry.figures {
            let line = figure.document_row(&entry.id);
            assert!(document.contains(&line), "missing: {line}");
        }
    }
}

mod regions;
