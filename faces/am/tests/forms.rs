//! Every form of every message, in jobs of 1, 2 and 4 processes.

mod support;

use support::{AM, Outcome, each_passed, launcher};

#[test]
fn every_form_with_every_number_of_arguments_and_many_lengths() {
    let program = AM.compile("forms.c", "c99", "every_form");
    for procs in [1, 2, 4] {
        let text = procs.to_string();
        let mut command = launcher(&["-n", &text]);
        each_passed(&Outcome::of(command.arg(&program).arg(&text)), procs);
    }
}
