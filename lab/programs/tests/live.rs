//! The programs on the interfaces of this host, a thread for each node: the same results as by one
//! node.

use hamlyn::Wait;
use hamlyn_programs::barrier::Barriers;
use hamlyn_programs::enumerate::{Counts, Enumeration};
use hamlyn_programs::synth::Synth;
use hamlyn_programs::{Live, ProgramError};
use hamlyn_udm::{Group, GroupOptions, Interrupt, UdmOptions};

/// Runs a program on so many nodes.
fn on_nodes<R: Send>(
    name: &str,
    nodes: u32,
    program: impl Fn(&Group, UdmOptions) -> Result<R, ProgramError> + Sync,
) -> Vec<R> {
    let name = format!("programs-{name}-{}", std::process::id());
    let addresses: Vec<String> = (0..nodes).map(|node| format!("{name}-{node}")).collect();
    let run = |me: u32| {
        let manager = hamlyn::open(&addresses[me as usize]).unwrap();
        let options = GroupOptions {
            name: name.clone(),
            me,
            addresses: addresses.clone(),
        };
        let group = Group::new(manager, options).unwrap();
        let options = UdmOptions {
            wait: Wait::millis(20_000),
            interrupt: match me % 2 {
                0 => Interrupt::Safepoint,
                _ => Interrupt::Polling,
            },
            ..UdmOptions::default()
        };
        let result = program(&group, options).unwrap();
        // A node that ends takes what others still have to say to it along.
        let mut end = hamlyn_udm::Udm::open(&group, "end", options, (), options.wait).unwrap();
        end.barrier(options.wait).unwrap();
        end.flush(options.wait).unwrap();
        result
    };
    let run = &run;
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..nodes).map(|me| scope.spawn(move || run(me))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

#[test]
fn nodes_meet_as_often_as_they_should() {
    for nodes in [2, 3, 8] {
        let barriers = Barriers {
            barriers: 200,
            round_operations: 0,
        };
        // A message of another barrier is an error.
        on_nodes(&format!("barrier-{nodes}"), nodes, |group, options| {
            barriers.run(group, options, &Live)
        });
    }
}

#[test]
fn many_nodes_enumerate_what_one_does() {
    let all = u32::MAX;
    for (nodes, side, hole, moves_max) in [
        (2, 5, 4, all),
        (4, 5, 0, all),
        (8, 5, 3, all),
        (3, 4, 1, all),
        (2, 6, 4, 5),
    ] {
        let puzzle = Enumeration {
            side,
            hole,
            moves_max,
        };
        let name = format!("enum-{nodes}-{side}");
        let parts = on_nodes(&name, nodes, |group, options| {
            puzzle.run(group, options, &Live)
        });
        let mut counts = Counts::default();
        parts.into_iter().for_each(|part| counts.add(part));
        assert_eq!(counts, puzzle.serial().unwrap(), "{puzzle:?} on {nodes}");
    }
}

#[test]
fn every_request_is_answered() {
    for group in [1, 10, 100] {
        let synth = Synth {
            group,
            groups: 500 / group,
            between: 0,
            stall: 0,
            seed: 5,
        };
        let name = format!("synth-{group}");
        let answered = on_nodes(&name, 4, |nodes, options| synth.run(nodes, options, &Live));
        assert_eq!(answered.iter().sum::<u64>(), 4 * 500);
    }
}

/// A puzzle that is none ends the program before it sends anything.
#[test]
fn a_puzzle_that_is_none_is_an_error() {
    let puzzle = Enumeration {
        side: 99,
        ..Enumeration::PAPER
    };
    let errors = on_nodes("none", 2, |group, options| {
        Ok(puzzle.run(group, options, &Live).unwrap_err().to_string())
    });
    assert!(errors[0].contains("99 holes a side"), "{errors:?}");
}
