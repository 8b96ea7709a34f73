//! Programs as jobs of several processes.

mod support;

use support::{UDM, each_passes};

#[test]
fn messages_of_every_length_arrive() {
    for standard in ["c99", "c++17"] {
        let program = UDM.compile("messages.c", standard, &format!("messages_{standard}"));
        for procs in [1, 2, 4] {
            each_passes(&program, procs, &[&procs.to_string()]);
        }
    }
}
