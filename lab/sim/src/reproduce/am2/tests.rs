//! The fixed part of the reproduction: LogP, the slope of Figure 9, each figure with few clients,
//! and ablations that must change the answers. `hamlyn-lab reproduce am2` measures all of it.

use std::sync::LazyLock;

use super::bench::{
    BOTH, Bench, Dma, FRAMES, LONG_QUEUE, Measured, PROTECTION, RELIABILITY, Setting, Subject,
    Variant, loads,
};
use super::exchange::{Exchange, Permutation};
use super::load::{Load, Outcome};
use super::*;
use crate::machine::MachineError;
use crate::reproduce::report::{Entry, FigureVerdict};
use crate::time::Span;

/// Rows that little is measured for.
const ROWS: [&str; 15] = [
    "V-126", "V-226", "V-227", "V-228", "V-229", "V-230", "V-232", "V-233", "V-234", "V-236",
    "V-238", "V-245", "V-250", "V-251", "V-284",
];

fn load(variant: Variant, load: Load) -> Setting {
    Setting {
        variant,
        subject: Subject::Load(load),
    }
}

fn log_p(variant: Variant) -> Setting {
    Setting {
        variant,
        subject: Subject::LogP,
    }
}

fn settings() -> Vec<Setting> {
    let changed = [&[], PROTECTION, RELIABILITY, BOTH].map(Variant::without);
    let mut settings: Vec<Setting> = changed.map(log_p).to_vec();
    settings.extend([1, 2, 8].map(|credits| log_p(Variant::credits(credits))));
    for variant in changed {
        settings.extend([8, 16].map(|clients| load(variant, loads::round_trips(clients))));
    }
    for (dma, length) in [(Dma::Streaming, 4_096), (Dma::Consistent, 8_192)] {
        settings.push(load(Variant::bulk(dma), loads::of_length(length)));
    }
    settings
}

fn report_of(machine: &Machine, rows: &[&str], settings: &[Setting]) -> Report {
    let extent = Extent { is_quick: true };
    let bench = Bench::measure(machine, extent, settings, || {}).unwrap();
    let mut paper = Paper::parse(PAPER).unwrap();
    paper.row.retain(|row| rows.contains(&&*row.id));
    Report::new(&paper, machine, &bench, claims::of).unwrap()
}

static REPORT: LazyLock<Report> = LazyLock::new(|| report_of(&machine(), &ROWS, &settings()));

fn outcome(variant: Variant, of: Load) -> Outcome {
    match load(variant, of).measure(&machine()).unwrap() {
        Measured::Load(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

/// Shorter than the report's, for debug builds.
fn short(load: Load) -> Load {
    Load {
        measured: Span::from_us(20_000),
        ..load
    }
}

fn refused(outcome: &Outcome) -> u64 {
    let clients = outcome.clients.iter();
    clients.map(|client| client.statistics.sent_again).sum()
}

fn entry(id: &str) -> &'static Entry {
    REPORT.entry(id).unwrap()
}

#[test]
fn log_p_is_within_5_percent() {
    for id in ["V-226", "V-227", "V-228", "V-229", "V-230", "V-234"] {
        for figure in &entry(id).figures {
            assert!(figure.deviation_percent.abs() <= 5.0, "{id}: {figure:?}");
        }
    }
    assert_eq!(
        entry("V-228").figures[0].verdict,
        FigureVerdict::PredictedHit
    );
    assert_eq!(REPORT.headline.defects, Vec::<String>::new());
}

/// Each part is what is gone where the board does not do it, not what the file says of it.
#[test]
fn parts_of_the_gap_come_out_by_removing_them() {
    let gap = |id: &str| entry(id).figures[0].ours;
    let (protection, reliability, rest) = (gap("V-232"), gap("V-233"), gap("V-234"));
    assert!((0.9..1.3).contains(&protection), "{protection}");
    assert!((4.5..5.5).contains(&reliability), "{reliability}");
    let slope = bench_slope();
    assert!(
        (protection + reliability + rest - slope).abs() < 0.5,
        "{slope}"
    );
}

fn bench_slope() -> f64 {
    let trip = |clients| {
        let load = loads::round_trips(clients);
        outcome(Variant::paper(), load).round_trip_us()
    };
    (trip(16) - trip(8)) / 8.0
}

#[test]
fn a_client_more_adds_the_own_gap() {
    let (slope, gap) = (bench_slope(), entry("V-228").figures[0].ours);
    assert!((slope / gap - 1.0).abs() <= 0.05, "{slope} {gap}");
    assert!((slope / 15.98 - 1.0).abs() <= 0.05, "{slope}");
}

#[test]
fn what_was_calibrated_comes_out() {
    for id in ["V-250", "V-251"] {
        for figure in &entry(id).figures {
            assert_eq!(figure.verdict, FigureVerdict::Calibrated);
            assert!(figure.is_within, "{id}: {figure:?}");
        }
    }
}

#[test]
fn fewer_credits_are_too_few() {
    let gap = |credits| {
        let setting = log_p(Variant::credits(credits));
        match setting.measure(&machine()).unwrap() {
            Measured::LogP(found) => found.gap,
            other => panic!("{other:?}"),
        }
    };
    let (one, two, four, eight) = (gap(1), gap(2), gap(4), gap(8));
    // One request at a time is a round trip each.
    assert!((one / 41.94 - 1.0).abs() < 0.05, "{one}");
    assert!(two < 0.7 * one && four < 0.7 * two, "{one} {two} {four}");
    assert!(eight > 0.9 * four, "{four} {eight}");
}

/// A queue of 16 takes four senders' four; one of 8 does not, and nobody is refused by a long one.
#[test]
fn a_shorter_queue_refuses_more() {
    let clients = short(loads::rates(4));
    let (paper, eight) = (
        outcome(Variant::queue(16), clients),
        outcome(Variant::queue(8), clients),
    );
    assert_eq!(refused(&paper), 0);
    assert!(refused(&eight) > 0);
    let many = short(loads::rates(16));
    assert!(refused(&outcome(Variant::paper(), many)) > 0);
    assert_eq!(refused(&outcome(Variant::queue(16 * 16), many)), 0);
}

#[test]
fn resident_endpoints_keep_the_rate() {
    let peak = 1e6 / entry("V-228").figures[0].ours;
    for clients in [1, 4, FRAMES] {
        let found = outcome(Variant::paper(), short(loads::virtual_networks(clients)));
        let part = found.rate() / peak;
        assert!((part - 1.0).abs() <= 0.11, "{clients}: {part}");
        assert_eq!(found.server.unloaded, 0);
    }
}

/// Overcommitted frames cost the server of one thread what a load takes, and more with fewer
/// frames.
#[test]
fn frames_and_their_loading_decide_overcommitment() {
    let ten = Load {
        measured: Span::from_us(60_000),
        ..loads::virtual_networks(10)
    };
    let at = |variant| outcome(variant, ten);
    let (free, paper) = (at(Variant::loading(0)), at(Variant::loading(500)));
    assert!(free.server.unloaded > 0 && paper.server.unloaded > 0);
    assert!(refused(&paper) > 0, "requests to endpoints without a frame");
    // A fifth of the time at most is spent on loads.
    let part = paper.rate() / free.rate();
    assert!((0.75..0.95).contains(&part), "{part}");
    let one = at(Variant::frames(1));
    assert!(one.rate() < 0.7 * paper.rate(), "{}", one.rate());
    let ten = at(Variant::frames(10));
    assert_eq!(ten.server.unloaded, 0);
    assert!(ten.rate() > 1.05 * paper.rate(), "{}", ten.rate());
}

/// Visits of one message give endpoints other turns than visits of 256, which the clients see; not
/// more than four messages of each wait, so the rate is about the same.
#[test]
fn visits_decide_whose_turn_it_is() {
    let ten = Load {
        measured: Span::from_us(60_000),
        ..loads::virtual_networks(10)
    };
    let visit = |messages| {
        let mut variant = Variant::loading(0);
        variant.options.visit = messages;
        outcome(variant, ten)
    };
    let (one, many) = (visit(1), visit(256));
    assert_ne!(one.shares(), many.shares());
    let part = one.rate() / many.rate();
    assert!((part - 1.0).abs() < 0.1, "{part}");
}

#[test]
fn curves_of_bandwidth_cross() {
    let rate = |dma, length| outcome(Variant::bulk(dma), short(loads::of_length(length))).rate();
    assert!(rate(Dma::Consistent, 256) > rate(Dma::Streaming, 256));
    assert!(rate(Dma::Consistent, 4_096) < rate(Dma::Streaming, 4_096));
}

/// A client that is refused waits longer each time, and those that are answered ask again at once:
/// clients of a queue that is too short for all starve. A queue that holds all is fair.
#[test]
fn many_clients_of_a_short_queue_starve() {
    let many = short(loads::round_trips(64));
    let least = |variant| outcome(variant, many).shares().0;
    assert!(least(Variant::paper()) < 0.5);
    assert!(least(Variant::queue(LONG_QUEUE)) > 0.9);
}

#[test]
fn each_node_of_a_permutation_is_asked_by_one() {
    let nodes = 92;
    for permutation in [
        Permutation::Cshift,
        Permutation::Neighbor,
        Permutation::Bisection,
    ] {
        let exchange = Exchange {
            nodes,
            permutation,
            data_bytes: 0,
        };
        let mut asked: Vec<usize> = (0..nodes).map(|node| exchange.peer(node)).collect();
        let is_mutual = (0..nodes).all(|node| exchange.peer(exchange.peer(node)) == node);
        assert_eq!(is_mutual, permutation != Permutation::Cshift);
        if permutation == Permutation::Bisection {
            assert!((0..nodes).all(|node| (node < 46) != (asked[node] < 46)));
        }
        asked.sort_unstable();
        assert_eq!(asked, (0..nodes).collect::<Vec<_>>());
    }
}

#[test]
fn pairs_across_the_bisection_share_few_cables() {
    let exchange = |permutation| {
        let exchange = Exchange {
            nodes: 92,
            permutation,
            data_bytes: 4_096,
        };
        let setting = Setting {
            variant: Variant::bulk(Dma::Streaming),
            subject: Subject::Exchange(exchange),
        };
        match setting.measure(&machine()).unwrap() {
            Measured::Exchange(exchanged) => exchanged.mb_per_s,
            other => panic!("{other:?}"),
        }
    };
    let (near, far) = (
        exchange(Permutation::Neighbor),
        exchange(Permutation::Bisection),
    );
    assert!((near / 30.97 - 1.0).abs() <= 0.15, "{near}");
    assert!((far / 5.65 - 1.0).abs() <= 0.15, "{far}");
}

#[test]
fn every_number_of_the_machine_has_a_part() {
    let few = |load| Load {
        measured: Span::from_us(5_000),
        ..load
    };
    let paper = Variant::paper();
    let settings = [
        log_p(paper),
        load(Variant::bulk(Dma::Streaming), few(loads::of_length(4_096))),
        load(Variant::bulk(Dma::Consistent), few(loads::of_length(4_096))),
        load(Variant::bulk(Dma::Consistent), few(loads::of_length(96))),
        load(Variant::bulk(Dma::Streaming), few(loads::of_length(96))),
        load(Variant::frames(1), few(loads::virtual_networks(2))),
        Setting {
            variant: Variant::bulk(Dma::Streaming),
            subject: Subject::Exchange(Exchange {
                nodes: 92,
                permutation: Permutation::Bisection,
                data_bytes: 4_096,
            }),
        },
    ];
    let machine = machine();
    let before: Vec<_> = settings
        .iter()
        .map(|setting| setting.measure(&machine).unwrap())
        .collect();
    for number in machine.numbers() {
        let has_part = match machine.with(&number.path, |value| value * 2.0 + 1.0) {
            Ok(changed) => settings
                .iter()
                .zip(&before)
                .any(|(setting, before)| setting.measure(&changed).unwrap() != *before),
            // A network that cannot be built so.
            Err(error) => matches!(error, MachineError::Network(_)),
        };
        assert!(has_part, "{}", number.path);
    }
}

/// `docs/reproduce-am2.md` has the figures of these rows.
#[test]
fn the_document_says_what_is() {
    let document = include_str!("../../../../../docs/reproduce-am2.md");
    for entry in &REPORT.entries {
        for figure in &entry.figures {
            let line = figure.document_row(&entry.id);
            assert!(document.contains(&line), "missing: {line}");
        }
    }
}
