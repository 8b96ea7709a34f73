//! The programs of `docs/tutorial-split-c.md` compile, and print what it says: alone, on four
//! processors, and on two hosts, which are network namespaces and need root; without it that is
//! skipped, and says so.

mod running;

use std::process::{Command, Stdio};

use hamlyn_testbed::Testbed;
use running::{Directory, Program, launcher, run};

const DOCUMENT: &str = include_str!("../../../docs/tutorial-split-c.md");

/// The program whose first line names it.
fn program(room: &Directory, name: &str) -> Program {
    let text = DOCUMENT.split(&format!("\n/* {name} */\n")).nth(1);
    let text = text.and_then(|rest| rest.split("\n```").next()).unwrap();
    let source = room.write(name, &format!("{text}\n"));
    Program::compile(&[&source], &["-O2"]).unwrap()
}

/// What the document shows under its command.
fn said(procs: usize) -> String {
    let line = format!("pi is 3.141593, by {procs} processors\n");
    assert!(procs != 4 || DOCUMENT.contains(&line));
    line
}

#[test]
fn the_serial_program_finds_pi() {
    let room = Directory::new("tutorial-serial");
    let outcome = run(&program(&room, "serial.sc"), 1, &[]);
    assert!(outcome.success, "{outcome:?}");
    assert_eq!(outcome.output, "pi is 3.141593\n");
}

#[test]
fn each_stage_finds_it_with_one_processor_and_with_four() {
    let room = Directory::new("tutorial");
    for name in ["reading.sc", "overlapping.sc", "storing.sc"] {
        let program = program(&room, name);
        for procs in [1, 4] {
            let outcome = run(&program, procs, &[]);
            assert!(outcome.success, "{name}: {outcome:?}");
            assert_eq!(outcome.output, said(procs), "{name}");
        }
    }
}

#[test]
fn two_hosts_find_it() {
    let Some(testbed) = Testbed::or_skip(2) else {
        return;
    };
    let room = Directory::new("tutorial-hosts");
    let mut table = String::new();
    for host in testbed.hosts() {
        table += &format!("{} {} slots=2\n", host.name(), host.address());
    }
    let shell = testbed.remote_shell(|_| "\"$@\"".to_owned());
    let (table, shell) = (room.write("hosts", &table), room.write("shell", &shell));
    let program = program(&room, "storing.sc");
    let mut command = Command::new(launcher());
    command.args(["run", "-n", "4", "--memory", "256M", "--hosts"]);
    command.arg(&table).arg(program.path());
    command.env("HAMLYN_REMOTE_SHELL", format!("sh {}", shell.display()));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), said(4));
}
