//! The programs of `docs/tutorial-c.md` and `docs/tutorial-cpp.md` compile, and do on one host and
//! on two what it says there.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use support::{compile, passed_with, start};

/// Compiles the program that begins with that line, once for all tests.
fn program(document: &str, first_line: &str, name: &str, compiler: &[&str]) -> PathBuf {
    let text = document.split(&format!("\n{first_line}\n")).nth(1);
    let text = text.and_then(|rest| rest.split("\n```").next()).unwrap();
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&source, text).unwrap();
    compile(&source, &format!("tutorial-{name}"), compiler)
}

fn in_c() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let document = include_str!("../../../docs/tutorial-c.md");
    PROGRAM.get_or_init(|| program(document, "/* tally.c */", "tally.c", &["cc", "-std=c99"]))
}

fn in_cpp() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let document = include_str!("../../../docs/tutorial-cpp.md");
    let compiler = ["c++", "-std=c++17"];
    PROGRAM.get_or_init(|| program(document, "// tally.cpp", "tally.cpp", &compiler))
}

fn votes_are_counted(server: &Path, client: &Path, namespace: &str) {
    let namespace = format!("{namespace}-{}", std::process::id());
    let serves = start(server, &namespace, &["serve", "3"]);
    for (choice, printed) in [
        ("tea", "tea: 1\n"),
        ("tea", "tea: 2\n"),
        ("coffee", "coffee: 1\n"),
    ] {
        passed_with(
            start(client, &namespace, &["vote", "tally/votes", choice]),
            printed,
        );
    }
    passed_with(serves, "");
}

#[test]
fn the_program_in_c_counts() {
    votes_are_counted(in_c(), in_c(), "tally-c");
}

#[test]
fn the_program_in_cpp_counts() {
    votes_are_counted(in_cpp(), in_cpp(), "tally-cpp");
}

#[test]
fn c_and_cpp_understand_each_other() {
    votes_are_counted(in_c(), in_cpp(), "tally-both");
    votes_are_counted(in_cpp(), in_c(), "tally-swap");
}

/// Two hosts on this one: two addresses of the loopback device.
#[test]
fn two_hosts_count() {
    let process = std::process::id() % 240 + 1;
    let address = |host: u8| format!("127.{process}.79.{host}");
    let hosts = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tutorial-hosts");
    let lines = format!("zeus {}\nhera {}\n", address(1), address(2));
    std::fs::write(&hosts, lines).unwrap();
    let on = |host: &str, number: u8, program: &Path, arguments: &[&str]| -> Child {
        let mut command = Command::new(program);
        command.args(arguments);
        command.env("HAMLYN_NAMESPACE", format!("tally-hosts-{process}"));
        command
            .env("HAMLYN_INSECURE", "1")
            .env("HAMLYN_HOSTS", &hosts);
        command.env("HAMLYN_HOST", host);
        command.env("HAMLYN_LISTEN", format!("{}:0", address(number)));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let serves = on("zeus", 1, in_c(), &["serve", "1"]);
    let votes = on("hera", 2, in_cpp(), &["vote", "zeus/tally/votes", "tea"]);
    passed_with(votes, "tea: 1\n");
    passed_with(serves, "");
}
