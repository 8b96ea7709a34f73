//! Every form of every message, in jobs of 1, 2 and 4 processes.

mod support;

use support::{Outcome, compile, launcher};

/// Each process of a job says that all was right.
fn passed(outcome: &Outcome, procs: usize) {
    let (out, errors) = (&outcome.out, &outcome.errors);
    assert_eq!(outcome.status, Some(0), "{out}{errors}");
    for proc in 0..procs {
        let line = format!("process {proc} of {procs} passed");
        assert_eq!(out.matches(&line).count(), 1, "{out}{errors}");
    }
}

#[test]
fn every_form_with_every_number_of_arguments_and_many_lengths() {
    let program = compile("forms.c", "c99", "every_form");
    for procs in [1, 2, 4] {
        let text = procs.to_string();
        let mut command = launcher(&["-n", &text]);
        passed(&Outcome::of(command.arg(&program).arg(&text)), procs);
    }
}
