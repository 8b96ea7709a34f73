//! The programs of `examples/am`, as `docs/active-messages.md` has them run.

mod support;

use std::path::PathBuf;
use std::process::Command;

use support::{AM, Outcome, launcher};

fn example(name: &str) -> PathBuf {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/am");
    AM.compile_file(
        &examples.join(format!("{name}.c")),
        "gnu99",
        &format!("example_{name}"),
        &[],
    )
}

#[test]
fn a_table_is_spread_over_a_job() {
    let program = example("table");
    for procs in [1, 4] {
        let text = procs.to_string();
        let outcome = Outcome::of(launcher(&["-n", &text]).arg(&program).arg("5000"));
        assert_eq!(outcome.status, Some(0), "{}", outcome.errors);
        let says = format!("{procs} processes added 5000 each: {}\n", 5000 * procs);
        assert_eq!(outcome.out, says);
    }
}

#[test]
fn two_programs_meet_by_a_name() {
    let program = example("hello");
    let namespace = format!("am-hello-{}", std::process::id());
    let run = |arguments: &'static [&'static str]| {
        let (program, namespace) = (program.clone(), namespace.clone());
        move || {
            let mut command = Command::new(program);
            command.args(arguments).env("HAMLYN_NAMESPACE", namespace);
            let outcome = Outcome::of(&mut command);
            assert_eq!(outcome.status, Some(0), "{}", outcome.errors);
            outcome.out
        }
    };
    std::thread::scope(|scope| {
        let server = scope.spawn(run(&["serve"]));
        assert_eq!(run(&["ask", "20", "22"])(), "42\n");
        assert_eq!(server.join().unwrap(), "");
    });
    let outcome = Outcome::of(&mut Command::new(&program));
    assert_eq!(outcome.status, Some(2));
}
