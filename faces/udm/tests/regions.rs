//! CRL for C: regions in jobs, misuse, and nodes that end.

mod support;

use std::process::Command;

use support::{Outcome, REGIONS_MISUSE, UDM, each_passes, passes};

#[test]
fn regions_are_shared_by_a_job() {
    for standard in ["c99", "c++17"] {
        let program = UDM.compile("regions.c", standard, &format!("regions_{standard}"));
        for procs in [1, 2, 4] {
            each_passes(&program, procs, &[&procs.to_string()]);
        }
    }
}

#[test]
fn misuse_is_a_code() {
    let program = UDM.compile("regions_misuse.c", "gnu99", "regions_misuse");
    for part in REGIONS_MISUSE {
        passes(Command::new(&program).arg(part));
    }
    // Sanitizers need the memory that this one takes away.
    passes(Command::new(&program).arg("memory"));
}

#[test]
fn the_old_way_ends_the_program() {
    let program = UDM.compile("regions_misuse.c", "gnu99", "regions_exit");
    let outcome = Outcome::of(Command::new(&program).arg("exit"));
    assert_eq!(
        (outcome.status, outcome.out.as_str()),
        (Some(1), ""),
        "{}",
        outcome.errors
    );
    assert!(
        outcome.errors.contains("crl_init first"),
        "{}",
        outcome.errors
    );
}

#[test]
fn a_node_that_ends_loses_its_regions_and_no_others() {
    let program = UDM.compile("regions_lost.c", "gnu99", "regions_lost");
    for what in ["lost", "length", "patience"] {
        each_passes(&program, 2, &[what]);
    }
}
