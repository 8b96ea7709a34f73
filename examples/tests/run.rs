//! Every example is run as its first lines say, and says what it must.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// Programs that see each other and nobody else.
struct Stage {
    namespace: String,
    environment: Vec<(&'static str, String)>,
}

impl Stage {
    fn new(name: &str) -> Self {
        Self {
            namespace: format!("x{}-{name}", std::process::id()),
            environment: Vec::new(),
        }
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("HAMLYN_NAMESPACE", &self.namespace)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn start(&self, program: &str, arguments: &[&str]) -> Running {
        Running(Some(self.command(program, arguments).spawn().unwrap()))
    }

    /// Runs a program to its end; what it printed.
    fn run(&self, program: &str, arguments: &[&str]) -> String {
        self.start(program, arguments).end()
    }
}

/// A program that is killed if its test fails.
struct Running(Option<Child>);

impl Running {
    fn end(mut self) -> String {
        let child = self.0.take().unwrap();
        let Output {
            status,
            stdout,
            stderr,
        } = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{said}");
        String::from_utf8(stdout).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Not through the macros, whose output the harness keeps to itself.
fn skip(why: &str) {
    let said = format!("SKIPPED: {why}\n");
    std::io::stderr().write_all(said.as_bytes()).unwrap();
}

#[test]
fn hello() {
    let program = env!("CARGO_BIN_EXE_hello");
    let stage = Stage::new("hello");
    let receiver = stage.start(program, &["receive", "2"]);
    for text in ["good morning", "good evening"] {
        stage.run(program, &["send", text]);
    }
    let said = receiver.end();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].ends_with("says: good morning"), "{said}");
    assert!(lines[1].ends_with("says: good evening"), "{said}");
    assert!(lines[0].starts_with("process "), "{said}");
}

#[test]
fn sum() {
    let program = env!("CARGO_BIN_EXE_sum");
    let stage = Stage::new("sum");
    let server = stage.start(program, &["serve", "3"]);
    let clients = [("1.5", "2.25"), ("1", "2"), ("-4", "0.5")]
        .map(|(left, right)| stage.start(program, &["ask", left, right]));
    let said = clients.map(Running::end);
    assert_eq!(said, ["3.75\n", "3\n", "-3.5\n"]);
    server.end();
}

#[test]
fn log() {
    let program = env!("CARGO_BIN_EXE_log");
    let stage = Stage::new("log");
    let collector = stage.start(program, &["collect"]);
    let lines: String = (0..1000).map(|number| format!("line {number}\n")).collect();
    let mut command = stage.command(program, &["send"]);
    let mut sender = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = sender.stdin.take().unwrap();
    let sender = Running(Some(sender));
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    sender.end();
    assert_eq!(collector.end(), lines);
}

#[test]
fn board() {
    let program = env!("CARGO_BIN_EXE_board");
    let stage = Stage::new("board");
    let owner = stage.start(program, &["show", "4"]);
    let writers = ["1", "2", "3", "4"].map(|row| {
        let points = format!("{row}00");
        stage.start(program, &["score", row, &points])
    });
    for writer in writers {
        writer.end();
    }
    let said = owner.end();
    let mut rows: Vec<&str> = said
        .lines()
        .map(|line| line.split(" (").next().unwrap())
        .collect();
    rows.sort_unstable();
    assert_eq!(
        rows,
        ["row 1: 100", "row 2: 200", "row 3: 300", "row 4: 400"]
    );
}

#[test]
fn gather() {
    let program = env!("CARGO_BIN_EXE_gather");
    let stage = Stage::new("gather");
    let owner = stage.start(program, &["own"]);
    stage.run(program, &["paint", "a"]);
    stage.run(program, &["delegate", "b", "c"]);
    let expected = ["a".repeat(32), "b".repeat(16), "c".repeat(16)].concat();
    assert_eq!(owner.end().trim_end(), expected);
}

#[test]
fn bouncer() {
    let program = env!("CARGO_BIN_EXE_bouncer");
    let stage = Stage::new("bouncer");
    let server = stage.start(program, &["serve", "2"]);
    assert_eq!(stage.run(program, &["ask", "public"]), "come in\n");
    let dismissed = stage.run(program, &["ask", "secret"]);
    assert!(dismissed.contains("door/service"), "{dismissed}");
    assert_eq!(stage.run(program, &["ask", "public"]), "come in\n");
    assert!(server.end().contains("is dismissed"));
}

#[test]
fn frames() {
    let program = env!("CARGO_BIN_EXE_frames");
    let stage = Stage::new("frames");
    let publisher = stage.start(program, &["publish", "3", "2"]);
    let readers = [0, 1].map(|_| stage.start(program, &["read"]));
    let expected = "0: 307200 bytes, 100\n1: 307200 bytes, 101\n2: 307200 bytes, 102\n";
    for reader in readers {
        assert_eq!(reader.end(), expected);
    }
    publisher.end();
}

#[test]
fn tasks() {
    let program = env!("CARGO_BIN_EXE_tasks");
    let stage = Stage::new("tasks");
    let listener = stage.start(program, &["listen", "3"]);
    stage.run(program, &["say", "over here"]);
    stage.run(program, &["count", "7"]);
    stage.run(program, &["count", "8"]);
    let said = listener.end();
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["number 7", "number 8", "over here"]);
}

#[test]
fn users() {
    if !rustix::process::getuid().is_root() {
        return skip("only root can be two users");
    }
    let program = env!("CARGO_BIN_EXE_users");
    let stage = Stage::new("users");
    let receiver = stage.start(program, &["receive", "65534"]);
    stage.run(program, &["send", "65534", "hello"]);
    assert_eq!(receiver.end(), "user 65534: hello\n");
}

/// Two hosts on this one: two addresses of the loopback device.
fn two_hosts(name: &str, network: u8) -> (Stage, Stage) {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let process = std::process::id() % 240 + 1;
    let address = |host: u8| format!("127.{process}.{network}.{host}");
    let known = directory.join("hosts");
    std::fs::write(
        &known,
        format!("zeus {}\nhera {}\n", address(1), address(2)),
    )
    .unwrap();
    let stage = |host: &str, number| Stage {
        environment: vec![
            ("HAMLYN_INSECURE", "1".to_owned()),
            ("HAMLYN_HOSTS", known.to_string_lossy().into_owned()),
            ("HAMLYN_HOST", host.to_owned()),
            ("HAMLYN_LISTEN", format!("{}:0", address(number))),
        ],
        ..Stage::new(name)
    };
    (stage("zeus", 1), stage("hera", 2))
}

#[test]
fn hosts() {
    let program = env!("CARGO_BIN_EXE_hosts");
    let (zeus, hera) = two_hosts("hosts", 77);
    let server = zeus.start(program, &["serve", "1"]);
    let answer = hera.run(program, &["ask", "zeus", "who is there?"]);
    assert!(answer.contains("asked: who is there?"), "{answer}");
    assert!(answer.contains("of user"), "{answer}");
    server.end();
}

/// The program of `docs/tutorial-rust.md` is `tally`, and does what it says there: on one host,
#[test]
fn tally() {
    let document = include_str!("../../docs/tutorial-rust.md");
    let source = include_str!("../src/bin/tally.rs");
    let body = &source[source.find("use std").unwrap()..];
    assert!(document.contains(&format!("// tally.rs\n{body}```")));
    let stage = Stage::new("tally");
    let program = env!("CARGO_BIN_EXE_tally");
    let server = stage.start(program, &["serve", "3"]);
    let vote = |choice| stage.run(program, &["vote", "tally/votes", choice]);
    assert_eq!(vote("tea"), "tea: 1\n");
    assert_eq!(vote("tea"), "tea: 2\n");
    assert_eq!(vote("coffee"), "coffee: 1\n");
    server.end();
}

/// and on two.
#[test]
fn tally_of_two_hosts() {
    let program = env!("CARGO_BIN_EXE_tally");
    let (zeus, hera) = two_hosts("tally-hosts", 78);
    let server = zeus.start(program, &["serve", "1"]);
    assert_eq!(
        hera.run(program, &["vote", "zeus/tally/votes", "tea"]),
        "tea: 1\n"
    );
    server.end();
}
