//! The report is complete, follows from the machine, and is the same each time.

use std::collections::BTreeMap;

use super::*;
use crate::machine::Parameters;
use crate::time::Span;

/// Rows of those kinds in the paper: identifier and kind.
const ROWS: &str = include_str!("rows.txt");

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
}

#[test]
fn numbers_are_reached_or_the_report_says_why_not() {
    let report = report(&Parameters::PAPER).unwrap();
    let missed: Vec<_> = report
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
        ["H-024", "H-409", "D-04", "D-05", "D-10"],
        "{missed:#?}"
    );
}
