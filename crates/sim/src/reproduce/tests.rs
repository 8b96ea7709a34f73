//! The report is complete, follows from the machine, and is the same each time.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::measure::{Failure, MESSAGES, Shape, flow, loopback, ping_pong, ping_pong_asleep};
use super::report::Treatment::{Figures, Judged};
use super::*;
use crate::machine::named::{NAMED, Place};
use crate::machine::{OutgoingMessage, Parameters, Protocol, System};
use crate::time::Span;

/// Rows of those kinds in the paper: identifier and kind.
const ROWS: &str = include_str!("rows.txt");

static REPORT: LazyLock<Report> = LazyLock::new(|| report(&Parameters::PAPER).unwrap());

/// That all numbers of these entries are within 5 %, without trusting what the report says of that.
fn reached(ids: &[&str]) {
    for id in ids {
        let entry = REPORT.entry(id).unwrap();
        assert!(!entry.figures.is_empty(), "{id} has no number");
        for figure in &entry.figures {
            let off = (figure.ours - figure.paper).abs();
            assert!(off <= 0.05 * figure.paper, "{id}: {figure:?}");
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
    for row in entries::all() {
        let kind = match row.kind {
            Kind::Number => "number",
            Kind::Experiment => "experiment",
            Kind::Claim => "claim",
            Kind::Derived => "derived",
        };
        assert!(entered.insert(row.id, kind).is_none(), "{} twice", row.id);
        assert!(!row.says.is_empty());
    }
    for (id, kind) in &required {
        assert_eq!(entered.remove(id), Some(*kind), "{id}");
    }
    let derived: Vec<_> = (1..=14).map(|number| format!("D-{number:02}")).collect();
    assert_eq!(entered.keys().copied().collect::<Vec<_>>(), derived);
    let reported: Vec<_> = REPORT.entries.iter().map(|entry| entry.id).collect();
    let rows: Vec<_> = entries::all().map(|row| row.id).collect();
    assert_eq!(reported, rows);
    let is_measured = |row: &report::Row| matches!(row.treatment, Figures(_) | Judged(_));
    let measured: Vec<_> = entries::all()
        .filter(is_measured)
        .map(|row| row.id)
        .collect();
    let measures: Vec<_> = entries::measures().map(|(id, _)| id).collect();
    assert_eq!(measured, measures);
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
    let ids: Vec<_> = missed.iter().map(|entry| entry.id).collect();
    assert_eq!(
        ids,
        ["H-024", "H-382", "H-409", "D-04", "D-05", "D-10"],
        "{missed:#?}"
    );
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
    let many = ping_pong(&Parameters::PAPER, &shape, MESSAGES).unwrap();
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
    // The smallest packets are bound by the receiver's card, the others by the sender's bus.
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
    assert_eq!(first, text(&report(&Parameters::PAPER).unwrap()));
    let parsed: serde_json::Value = serde_json::from_str(&first).unwrap();
    let entries = parsed["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 153 + 14);
    assert!(entries.iter().all(|entry| entry["id"].is_string()));
    assert_eq!(parsed["parameters"].as_array().unwrap().len(), NAMED.len());
}

/// What a machine does, in a few figures that every parameter has a part in; `crowded` is the same with a card that is
/// full in time.
pub(super) fn figures(machine: &Parameters, crowded: &Parameters) -> Result<Vec<Span>, Failure> {
    let with_metadata = Shape {
        metadata_bytes: 60,
        ..Shape::datagram(256, 700)
    };
    let refused = flow(machine, &Shape::datagram(256, 64), 20, false)?;
    let working = flow(machine, &Shape::short(Protocol::Tagged), 20, true)?;
    // Three senders and a receiver that cannot keep up, so that its card's memory fills, and then the work
    // queues.
    let mut crowded = System::new(*crowded, 4, 4096, 1);
    for _ in 0..120 {
        for from in 1..4 {
            crowded.send(
                from,
                &OutgoingMessage::new(0, Protocol::Datagram, 16 * 1024),
            )?;
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
        refused.receiving_lanai,
        working.receiving_processor,
        posted.since(crate::time::Time::ZERO),
    ])
}

#[test]
fn every_parameter_has_a_part_in_the_figures() {
    let figures = |machine: &Parameters| figures(machine, machine).unwrap();
    let paper = figures(&Parameters::PAPER);
    assert_eq!(figures(&Parameters::PAPER), paper);
    for named in NAMED {
        let mut machine = Parameters::PAPER;
        match named.place {
            Place::Span(span) => *span(&mut machine) += Span::from_us(1),
            Place::Cycles(count) => *count(&mut machine) += 1,
            Place::Bytes(count) => *count(&mut machine) /= 8,
            Place::Number(number) => *number(&mut machine) += 1,
        }
        assert_ne!(figures(&machine), paper, "{}", named.name);
    }
}

/// Another machine, another report: nothing in it is written down.
#[test]
fn another_machine_misses_the_papers_figures() {
    let slow = Parameters {
        switch: Span::from_us(2),
        out_overhead_cycles: 64,
        find_entry: Span::from_us(6),
        ..Parameters::PAPER
    };
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
    let other = Parameters {
        out_overhead_cycles: 0,
        ..Parameters::PAPER.without_control_program()
    };
    let report = super::report(&other).unwrap();
    for id in ["H-306", "H-309", "H-323", "H-333", "H-336"] {
        let entry = report.entry(id).unwrap();
        assert_eq!(entry.verdict, Verdict::Contradicted, "{entry:#?}");
    }
}

/// `docs/reproduce-hamlyn.md` lists parameters, readings and counts: they are those of the code.
#[test]
fn the_document_says_what_is() {
    let document = include_str!("../../../../docs/reproduce-hamlyn.md");
    let says = |line: &str| assert!(document.contains(line), "missing: {line}");
    for parameter in &REPORT.parameters {
        let (value, unit) = (parameter.value, parameter.unit);
        says(&format!(
            "| {} | {value} {unit} | {} |\n",
            parameter.name, parameter.source
        ));
    }
    for reading in &REPORT.readings {
        says(&format!(
            "| {} | {} | {} | {} |\n",
            reading.place, reading.says, reading.follows, reading.rows
        ));
    }
    let figures: Vec<_> = REPORT
        .entries
        .iter()
        .flat_map(|entry| &entry.figures)
        .collect();
    let of = |origin| {
        figures
            .iter()
            .filter(|figure| figure.origin == origin)
            .count()
    };
    says(&format!(
        "{} of {} numbers are within 5 %; {} of the {} are predicted, {} calibrated, {} inputs.",
        figures.iter().filter(|figure| figure.is_within).count(),
        figures.len(),
        of(Origin::Predicted),
        figures.len(),
        of(Origin::Calibrated),
        of(Origin::Input),
    ));
    says(&format!(
        "{} rows are supported by an experiment; {} are shown by tests elsewhere; {} are cited",
        REPORT.count(Verdict::Supported),
        REPORT.count(Verdict::ShownElsewhere),
        REPORT.count(Verdict::Cited),
    ));
    // Every entry that is not as the paper says is explained there.
    for entry in &REPORT.entries {
        if matches!(entry.verdict, Verdict::NotReached | Verdict::Contradicted) {
            says(&format!("**{}**", entry.id));
        }
    }
}
