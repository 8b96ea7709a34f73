//! The report is complete, follows from the machine, and is the same each time.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::*;
use crate::machine::number::Number;
use crate::machine::{OutgoingMessage, Protocol, System};
use crate::reproduce::measure::{MESSAGES, Shape, flow, loopback, ping_pong, ping_pong_asleep};
use crate::reproduce::report::{FigureVerdict, Verdict};
use crate::reproduce::rows::{Kind, Treatment};

/// Rows of those kinds in the paper: identifier and kind.
const ROWS: &str = include_str!("rows.txt");

static REPORT: LazyLock<Report> = LazyLock::new(|| report(&Machine::hamlyn()).unwrap());

/// That all numbers of these entries are within 5 %, without trusting what the report says of that.
fn reached(ids: &[&str]) {
    for id in ids {
        let entry = REPORT.entry(id).unwrap();
        assert!(!entry.figures.is_empty(), "{id} has no number");
        for figure in &entry.figures {
            let off = (figure.ours - figure.paper).abs();
            let rounds = figure.unit == "%" && off <= 0.5;
            assert!(off <= 0.05 * figure.paper || rounds, "{id}: {figure:?}");
        }
    }
}

fn supported(ids: &[&str]) {
    for id in ids {
        let entry = REPORT.entry(id).unwrap();
        assert_eq!(entry.verdict, Verdict::Supported, "{entry:#?}");
    }
}

fn ours(id: &str, what: &str) -> f64 {
    let entry = REPORT.entry(id).unwrap();
    let figure = entry.figures.iter().find(|figure| figure.what == what);
    figure.unwrap().ours
}

#[test]
fn every_number_experiment_and_claim_of_the_paper_is_an_entry() {
    let required: Vec<(&str, &str)> = ROWS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap())
        .collect();
    assert_eq!(required.len(), 153);
    let mut entered = BTreeMap::new();
    let rows = Paper::hamlyn().row;
    for row in &rows {
        let kind = match row.kind {
            Kind::Number => "number",
            Kind::Experiment => "experiment",
            Kind::Claim => "claim",
            Kind::Derived => "derived",
        };
        assert!(entered.insert(&*row.id, kind).is_none(), "{} twice", row.id);
        assert!(!row.says.is_empty());
    }
    for (id, kind) in &required {
        assert_eq!(entered.remove(id), Some(*kind), "{id}");
    }
    let derived: Vec<_> = (1..=14).map(|number| format!("D-{number:02}")).collect();
    assert_eq!(entered.keys().copied().collect::<Vec<_>>(), derived);
    let reported = REPORT.entries.iter().map(|entry| &entry.id);
    assert!(reported.eq(rows.iter().map(|row| &row.id)));
    // What is measured has an experiment, and each experiment a row.
    let measured = rows
        .iter()
        .filter(|row| row.treatment == Treatment::Measured);
    assert!(
        measured
            .map(|row| &*row.id)
            .eq(experiments().map(|(id, _)| id))
    );
    assert!(REPORT.readings.len() >= 13);
}

#[test]
fn numbers_are_reached_or_the_report_says_why_not() {
    let missed: Vec<_> = REPORT
        .entries
        .iter()
        .filter(|entry| matches!(entry.verdict, Verdict::NotReached | Verdict::Contradicted))
        .collect();
    for entry in &missed {
        assert!(!entry.remark.is_empty(), "{entry:#?}");
    }
    let ids: Vec<_> = missed.iter().map(|entry| &*entry.id).collect();
    assert_eq!(ids, ["H-024", "H-382", "D-05", "D-10"], "{missed:#?}");
    for entry in &REPORT.entries {
        let measured = matches!(entry.verdict, Verdict::Reached | Verdict::NotReached);
        assert_eq!(measured, !entry.figures.is_empty(), "{}", entry.id);
        assert!(measured || !entry.remark.is_empty(), "{}", entry.id);
    }
}

#[test]
fn single_figures_come_of_round_trips_of_ten_thousand_messages() {
    const { assert!(MESSAGES >= 10_000) };
    let shape = Shape::short(Protocol::Raw);
    let many = ping_pong(&Machine::hamlyn(), &shape, MESSAGES).unwrap();
    // Half of the round trip is what the report says of one way.
    assert!((many.round_trip.as_us_f64() / 2.0 - ours("H-294", "one way")).abs() < 0.01);
    assert!((many.round_trip.as_us_f64() - ours("H-294", "round trip")).abs() < 0.01);
    supported(&["H-289"]);
}

#[test]
fn table_4_is_where_the_time_goes() {
    let rows = &REPORT.table4;
    let (total, parts) = rows.split_last().unwrap();
    assert_eq!(parts.len(), 5);
    for row in rows {
        for (paper, ours) in [
            (row.paper_us.0, row.ours_us.0),
            (row.paper_us.1, row.ours_us.1),
        ] {
            assert!((paper - ours).abs() <= paper * 0.05, "{row:?}");
        }
    }
    let sum: f64 = parts.iter().map(|row| row.ours_us.0).sum();
    assert!((sum - total.ours_us.0).abs() < 1e-9);
    reached(&[
        "H-001", "H-294", "H-295", "H-296", "H-297", "H-298", "H-299", "H-300", "H-301", "H-302",
        "H-303", "H-357",
    ]);
    supported(&["H-293", "H-304", "H-306"]);
}

#[test]
fn figure_7_has_its_steps_and_its_fine_structure() {
    reached(&[
        "H-308", "H-310", "H-313", "H-314", "H-315", "H-316", "H-318", "H-319",
    ]);
    supported(&["H-309", "H-311", "H-312", "H-317", "H-320"]);
    let plot = REPORT.plots.iter().find(|plot| plot.name == "figure-7");
    let curves = &plot.unwrap().curves;
    assert_eq!(curves.len(), 3);
    let at = |curve: usize, bytes: f64| {
        let points = &curves[curve].points;
        points.iter().find(|point| point.0 == bytes).unwrap().1
    };
    // 60 bytes of metadata: the first step is 60 bytes earlier.
    assert!(at(2, 200.0) - at(2, 196.0) > 10.0 && at(0, 200.0) - at(0, 196.0) < 2.0);
    assert!(at(0, 260.0) - at(0, 256.0) > 10.0);
}

#[test]
fn figure_8_alternates_between_two_slopes() {
    reached(&["H-002", "H-003", "H-324", "H-327", "H-334", "H-335"]);
    supported(&["H-323", "H-325", "H-326", "H-333", "H-336"]);
    let plot = REPORT.plots.iter().find(|plot| plot.name == "figure-8");
    let points = &plot.unwrap().curves[0].points;
    let slope = |from: usize, to: usize| {
        let of = |bytes: usize| {
            points
                .iter()
                .find(|point| point.0 == bytes as f64)
                .unwrap()
                .1
        };
        (of(to) - of(from)) * 1e3 / (to - from) as f64
    };
    for packet in 1..4 {
        let begin = packet * 4096;
        let (flat, steep) = (
            slope(begin + 64, begin + 2048),
            slope(begin + 3072, begin + 4096),
        );
        assert!((flat - 11.6).abs() < 0.6, "{flat}");
        assert!((steep - 55.5).abs() < 2.8, "{steep}");
    }
}

#[test]
fn figures_9_and_10_have_their_asymptotes() {
    reached(&[
        "H-341", "H-342", "H-346", "H-350", "H-353", "H-354", "H-410",
    ]);
    supported(&["H-343", "H-344", "H-345", "H-358"]);
    // The smallest packets are bound by the receiver's board, the others by the sender's bus.
    assert!(ours("H-342", "40 KB messages") < 0.75 * ours("H-346", "1 KB packets, 40 KB messages"));
    for name in ["figure-9", "figure-10"] {
        let plot = REPORT.plots.iter().find(|plot| plot.name == name).unwrap();
        assert_eq!(plot.curves.len(), 5);
        assert!(plot.curves.iter().all(|curve| curve.points.len() == 80));
    }
}

#[test]
fn single_numbers_and_comparisons() {
    reached(&[
        "H-328", "H-330", "H-365", "H-366", "H-370", "H-394", "H-395", "H-408",
    ]);
    supported(&["H-004", "H-018", "H-371", "H-375"]);
    reached(&[
        "D-01", "D-02", "D-03", "D-06", "D-07", "D-08", "D-09", "D-11", "D-12", "D-13", "D-14",
    ]);
}

#[test]
fn the_same_twice_and_as_json() {
    let text = |report: &Report| serde_json::to_string(report).unwrap();
    let first = text(&REPORT);
    assert_eq!(first, text(&report(&Machine::hamlyn()).unwrap()));
    let parsed: serde_json::Value = serde_json::from_str(&first).unwrap();
    let entries = parsed["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 153 + 14);
    assert!(entries.iter().all(|entry| entry["id"].is_string()));
    assert!(parsed["headline"]["independent"].is_u64());
}

/// What a machine does, in a few figures that every number has a part in. `full_bytes` is how much
/// more than a board holds is sent to it, by messages of 16 KB.
pub(in crate::reproduce) fn figures(machine: &Machine) -> Result<Vec<Span>, Failure> {
    let with_metadata = Shape {
        metadata_bytes: 60,
        ..Shape::datagram(256, 700)
    };
    let refused = flow(machine, &Shape::datagram(256, 64), 20, false)?;
    let working = flow(machine, &Shape::short(Protocol::Tagged), 20, true)?;
    // Three senders and a receiver that cannot keep up, so that its board's memory fills, and then
    // the work queues.
    let mut crowded = System::new(machine, 4, 4096, 1);
    for _ in 0..120 {
        for from in 1..4 {
            let message = OutgoingMessage::new(0, Protocol::Datagram, 16 * 1024);
            crowded.send(from, &message)?;
        }
    }
    let posted = crowded.now();
    while crowded.await_message(0).is_some() {}
    Ok(vec![
        ping_pong(machine, &Shape::short(Protocol::Raw), 4)?.span,
        ping_pong(machine, &Shape::short(Protocol::Tagged), 4)?.span,
        ping_pong(machine, &with_metadata, 4)?.span,
        ping_pong_asleep(machine, &Shape::datagram(256, 0), 4)?.span,
        loopback(machine, &Shape::datagram(256, 4), 4)?.span,
        flow(machine, &Shape::datagram(64, 16 * 1024), 4, true)?.span,
        refused.receiving_lanai,
        working.receiving_processor,
        working.sending_lanai,
        working.sending_bus,
        posted.since(crate::time::Time::ZERO),
    ])
}

/// The same of a board that is soon full, as today's memory is larger than the experiment's
/// messages.
pub(in crate::reproduce) fn all_figures(machine: &Machine) -> Vec<Span> {
    let full = machine
        .with("board.arrivals_max", |bytes| (bytes / 256.0).max(8_192.0))
        .unwrap();
    let [mut all, more] = [machine, &full].map(|machine| figures(machine).unwrap());
    all.extend(more);
    all
}

/// No hidden number: each that the file has changes a figure, and is from somewhere.
pub(in crate::reproduce) fn every_number_has_a_part(machine: &Machine) {
    let before = all_figures(machine);
    assert_eq!(all_figures(machine), before);
    for Number { path, unit, .. } in machine.numbers() {
        let changed = machine.with(&path, |value| match unit {
            "bytes" | "count" => value * 2.0,
            "cycles" => value + 100.0,
            _ => value * 2.0 + 1.0,
        });
        assert_ne!(all_figures(&changed.unwrap()), before, "{path}");
    }
}

#[test]
fn every_number_has_a_part_in_the_figures() {
    every_number_has_a_part(&Machine::hamlyn());
}

#[test]
fn the_headline_counts_inputs_calibration_and_predictions_apart() {
    let headline = &REPORT.headline;
    let figures: Vec<_> = REPORT
        .entries
        .iter()
        .flat_map(|entry| &entry.figures)
        .collect();
    let counted = headline.inputs
        + headline.calibrated_figures
        + headline.predicted_hit
        + headline.predicted_missed
        + headline.repeated;
    assert_eq!(counted, figures.len());
    assert_eq!(headline.defects, Vec::<String>::new());
    assert!(headline.calibrated <= headline.independent);
    // Fewer to choose than before, and more that could have failed.
    assert!(headline.calibrated < 24 && headline.predicted_hit + headline.predicted_missed > 7);
    // A number more to choose than to choose by, and the report says so.
    let mut numbers = REPORT.parameters.clone();
    let chosen = numbers
        .iter_mut()
        .find(|number| number.path == "bus.word")
        .unwrap();
    chosen.provenance = crate::machine::number::Provenance::Calibrated;
    chosen.source = "H-298".to_owned();
    let defects = report::headline(&REPORT.entries, &numbers).defects;
    assert!(defects[0].contains("more to choose"), "{defects:?}");
    // And of a row that a number was chosen by and that is called a prediction.
    chosen_by(&mut numbers, "H-353");
    let defects = report::headline(&REPORT.entries, &numbers).defects;
    assert!(
        defects.iter().any(|defect| defect.contains("H-353")),
        "{defects:?}"
    );
}

fn chosen_by(numbers: &mut [Number], row: &str) {
    let mut all = numbers.iter_mut();
    let number = all.find(|number| number.path == "bus.word").unwrap();
    number.source = row.to_owned();
}

/// Another machine, another report: nothing in it is written down.
#[test]
fn another_machine_misses_the_papers_figures() {
    let slow = Machine::hamlyn()
        .with("link.switch", |_| 2_000.0)
        .and_then(|machine| machine.with("bus.out.overhead", |_| 64.0))
        .and_then(|machine| machine.with("at.interface.entry_read.0", |ns| ns + 3_000.0))
        .unwrap();
    let report = report(&slow).unwrap();
    let off = |id: &str| report.entry(id).unwrap().verdict;
    for id in [
        "H-294", "H-299", "H-313", "H-327", "H-334", "H-341", "H-342", "H-354", "D-01",
    ] {
        assert_eq!(off(id), Verdict::NotReached, "{id}");
    }
    // What those three have no part in stays as it was.
    for id in ["H-298", "H-300", "H-366", "H-394"] {
        assert_eq!(off(id), Verdict::Reached, "{id}");
    }
    let raw = &report.entry("H-294").unwrap().figures[0];
    assert_eq!(raw.ours, 12.7 + 1.5);
    // Claims can be contradicted: by a machine without a control program and with a fast bus.
    let other = Machine::hamlyn()
        .with("bus.out.overhead", |_| 0.0)
        .unwrap()
        .free_of("interface");
    let report = super::report(&other).unwrap();
    for id in ["H-306", "H-309", "H-323", "H-333", "H-336"] {
        let entry = report.entry(id).unwrap();
        assert_eq!(entry.verdict, Verdict::Contradicted, "{entry:#?}");
    }
}

/// `docs/reproduce-hamlyn.md` lists predictions, readings and counts: they are those of the code.
#[test]
fn the_document_says_what_is() {
    let document = include_str!("../../../../../docs/reproduce-hamlyn.md");
    let says = |line: &str| assert!(document.contains(line), "missing: {line}");
    for reading in &REPORT.readings {
        says(&format!(
            "| {} | {} | {} | {} |\n",
            reading.place, reading.says, reading.follows, reading.rows
        ));
    }
    let headline = &REPORT.headline;
    says(&format!(
        "| predicted, hit | {} |\n| predicted, missed | {} |\n| calibrated numbers of the machine | {} |\n| rows they were chosen by | {} |\n| numbers of the paper that are inputs | {} |\n",
        headline.predicted_hit,
        headline.predicted_missed,
        headline.calibrated,
        headline.independent,
        headline.inputs,
    ));
    // Every prediction, and every entry that is not as the paper says, stands there.
    for entry in &REPORT.entries {
        for figure in &entry.figures {
            if matches!(
                figure.verdict,
                FigureVerdict::PredictedHit | FigureVerdict::PredictedMissed
            ) {
                let name = match figure.verdict {
                    FigureVerdict::PredictedHit => "hit",
                    _ => "missed",
                };
                says(&format!(
                    "| {} | {} | {} {} | {:.2} | {name} |\n",
                    entry.id, figure.what, figure.paper, figure.unit, figure.ours
                ));
            }
        }
        if matches!(entry.verdict, Verdict::NotReached | Verdict::Contradicted) {
            says(&format!("**{}**", entry.id));
        }
    }
}
