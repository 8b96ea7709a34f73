//! The programs of `examples/udm`, as `docs/user-direct-messaging.md` has them run.

mod support;

use std::path::PathBuf;

use support::{Outcome, UDM, launcher};

fn example(name: &str) -> PathBuf {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/udm");
    let file = examples.join(format!("{name}.c"));
    UDM.compile_file(&file, "c99", &format!("example_{name}"), &[])
}

fn output(program: &PathBuf, procs: usize, argument: &str) -> String {
    let text = procs.to_string();
    let outcome = Outcome::of(launcher(&["-n", &text]).arg(program).arg(argument));
    assert_eq!(outcome.status, Some(0), "{}", outcome.errors);
    outcome.out
}

#[test]
fn a_census_counts_all_throws() {
    let program = example("census");
    for procs in [1, 2, 4] {
        let out = output(&program, procs, "1000");
        let lines = out.lines().map(|line| line.split_once(": ").unwrap());
        let counts: Vec<(usize, usize)> = lines
            .map(|(sum, count)| (sum.trim().parse().unwrap(), count.parse().unwrap()))
            .collect();
        let sums: Vec<usize> = counts.iter().map(|(sum, _)| *sum).collect();
        assert_eq!(sums, (2..=12).collect::<Vec<_>>());
        let all: usize = counts.iter().map(|(_, count)| count).sum();
        assert_eq!(all, 1000 * procs);
        // A seven is thrown six times as often as a two.
        assert!(counts[5].1 > counts[0].1, "{out}");
    }
}

#[test]
fn a_rod_has_the_same_temperatures_on_any_number_of_nodes() {
    let program = example("relax");
    let end = |out: &str, node: usize| {
        let line = format!("piece {node} ends at ");
        let found = out.lines().find_map(|text| text.strip_prefix(&line));
        found.unwrap().parse::<f64>().unwrap()
    };
    let alone = output(&program, 1, "40");
    for (procs, length) in [(2, "20"), (4, "10")] {
        let out = output(&program, procs, length);
        assert_eq!(out.lines().next(), alone.lines().next(), "rounds");
        assert_eq!(end(&out, procs - 1), end(&alone, 0));
        for node in 0..procs {
            // The temperatures of a rod at rest are in proportion to the place.
            let place = ((node + 1) * 40 / procs) as f64;
            assert!(
                (end(&out, node) - 100.0 * place / 41.0).abs() < 0.01,
                "{out}"
            );
        }
    }
}

/// The programs in C of `docs/user-direct-messaging.md` do what it says.
#[test]
fn the_programs_of_the_document_run() {
    let document =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/user-direct-messaging.md");
    let text = std::fs::read_to_string(document).unwrap();
    let programs: Vec<&str> = text
        .split("```c\n")
        .skip(1)
        .map(|rest| rest.split_once("```").unwrap().0)
        .collect();
    // Each of two nodes prints the sum of all numbers, and then the counter of both.
    for (at, (program, line)) in programs.iter().zip(["1\n", "2\n"]).enumerate() {
        let source = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("document_{at}.c"));
        std::fs::write(&source, program).unwrap();
        let program = UDM.compile_file(&source, "c99", &format!("document_{at}"), &[]);
        let outcome = Outcome::of(launcher(&["-n", "2"]).arg(program));
        assert_eq!(outcome.status, Some(0), "{}", outcome.errors);
        assert_eq!(outcome.out, line.repeat(2));
    }
    assert_eq!(programs.len(), 2);
}
