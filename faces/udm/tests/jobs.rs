//! Programs as jobs of several processes.

mod support;

use std::path::PathBuf;
use std::process::Command;

use support::{
    Outcome, UDM, each_passed, each_passes, launcher, mpirun, nothing_is_left_in, open_mpi, passes,
};

#[test]
fn messages_of_every_length_arrive() {
    for standard in ["c99", "c++17"] {
        let program = UDM.compile("messages.c", standard, &format!("messages_{standard}"));
        for procs in [1, 2, 4] {
            each_passes(&program, procs, &[&procs.to_string()]);
        }
    }
}

#[test]
fn sections_keep_handlers_out() {
    for standard in ["c99", "c++17"] {
        let program = UDM.compile("sections.c", standard, &format!("sections_{standard}"));
        for procs in [1, 2, 4] {
            each_passes(&program, procs, &[]);
            each_passes(&program, procs, &["polling"]);
        }
    }
}

#[test]
fn every_strategy_serves() {
    let messages = UDM.compile("messages.c", "gnu99", "strategies_messages");
    let sections = UDM.compile("sections.c", "gnu99", "strategies_sections");
    for strategy in ["proc", "np", "inject", "receive"] {
        for (program, arguments) in [(&messages, &["2"][..]), (&sections, &[])] {
            let mut command = launcher(&["-n", "2", "--strategy", strategy]);
            let outcome = Outcome::of(command.arg(program).args(arguments));
            each_passed(&outcome, 2);
        }
    }
}

#[test]
fn upcalls_interrupt_a_program_that_computes() {
    let program = UDM.compile("upcalls.c", "gnu11", "upcalls");
    for procs in [1, 2, 4] {
        each_passes(&program, procs, &[]);
    }
}

#[test]
fn signals_interrupt_a_program_that_computes() {
    for standard in ["gnu11", "gnu17"] {
        let program = UDM.compile("signals.c", standard, &format!("signals_{standard}"));
        for procs in [1, 2, 4] {
            each_passes(&program, procs, &[]);
        }
    }
}

#[test]
fn each_end_of_a_node_has_its_code() {
    let program = UDM.compile("nodes.c", "gnu99", "nodes");
    for what in ["lost", "barrier", "refused"] {
        each_passes(&program, 2, &[what]);
    }
    let file =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("udm-full-{}", std::process::id()));
    each_passes(&program, 2, &["full", file.to_str().unwrap()]);
    passes(Command::new(&program).arg("unreachable"));
}

#[test]
fn nodes_meet_without_a_launcher() {
    let program = UDM.compile("group.c", "c99", "group");
    let names: Vec<String> = (0..3)
        .map(|node| format!("udm-group-{}-{node}", std::process::id()))
        .collect();
    std::thread::scope(|scope| {
        for node in 0..3 {
            let (program, names) = (&program, &names);
            scope.spawn(move || {
                let mut command = Command::new(program);
                command.args(["by names", &node.to_string()]).args(names);
                passes(&mut command);
            });
        }
    });
}

#[test]
fn mpirun_starts_a_job() {
    let Some(directory) = open_mpi("mpirun_starts_a_job_of_udm") else {
        return;
    };
    for name in ["messages", "regions"] {
        let program = UDM.compile(&format!("{name}.c"), "gnu99", &format!("mpirun_{name}"));
        for procs in [1, 2, 4] {
            let mut command = mpirun(procs, &directory);
            command.arg(&program).arg(procs.to_string());
            each_passed(&Outcome::of(&mut command), procs);
        }
    }
    nothing_is_left_in(directory);
}
