//! Programs of the paper's Table 2 with their processors on two hosts, under each of the four
//! strategies (Split-C 3, 5.4): the hosts are network namespaces, which need root. Without it the
//! test is skipped, and says so.

mod running;

use std::path::Path;
use std::process::{Command, Stdio};

use hamlyn_testbed::Testbed;
use running::{Directory, Program, launcher};

const STRATEGIES: [&str; 4] = ["proc", "np", "inject", "receive"];

/// Every kind of access is in one of them: stores, bulk stores, atomic procedures, gets, reads, and
/// long computation between accesses.
const RUNS: &[(&str, &[&str])] = &[
    ("radix", &["-n", "1024"]),
    ("radixb", &["-n", "4096"]),
    ("sample", &["-n", "512"]),
    ("cannon", &["-n", "16"]),
    ("mm", &["-n", "16", "-b", "4"]),
    ("wator", &["-n", "12", "-s", "2"]),
    ("em3d", &["-v", "2"]),
    ("granularity", &["-g", "20"]),
];

#[test]
fn programs_run_over_two_hosts_under_each_strategy() {
    let Some(testbed) = Testbed::or_skip(2) else {
        return;
    };
    let room = Directory::new("hosts");
    let mut table = String::new();
    for host in testbed.hosts() {
        table += &format!("{} {} slots=2\n", host.name(), host.address());
    }
    let shell = testbed.remote_shell(|_| "\"$@\"".to_owned());
    let (table, shell) = (room.write("hosts", &table), room.write("shell", &shell));
    for (name, arguments) in RUNS {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../examples/splitc")
            .join(format!("{name}.sc"));
        let program = Program::compile(&[&source], &["-O2", "-w"]).unwrap();
        for strategy in STRATEGIES {
            let mut command = Command::new(launcher());
            command.args(["run", "-n", "4", "--memory", "256M", "--strategy", strategy]);
            command.arg("--hosts").arg(&table);
            command.arg(program.path()).args(*arguments);
            command.env("HAMLYN_REMOTE_SHELL", format!("sh {}", shell.display()));
            let output = command.stdin(Stdio::null()).output().unwrap();
            let (out, errors) = (
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr),
            );
            assert!(
                output.status.success() && out.ends_with("\nPASSED\n"),
                "{name} under {strategy}: {}\n{out}{errors}",
                output.status
            );
        }
    }
}
