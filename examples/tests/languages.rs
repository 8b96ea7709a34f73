//! Examples that there are in several languages, each of which must do the same, and understand the
//! others: every pair of languages is run, a server in one and its clients in the other. Those in
//! Python are run, with each other and with these, by `faces/python/tests/test_examples.py`.

#[path = "../../faces/c/tests/support/compile.rs"]
mod compilation;
mod support;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use compilation::compile;
use sha2::{Digest as _, Sha256};
use support::{Running, Stage};

/// How an example is compiled, beside what all have in common.
struct Compiler {
    language: &'static str,
    extension: &'static str,
    command: &'static [&'static str],
}

const C: Compiler = Compiler {
    language: "c",
    extension: "c",
    command: &["cc", "-std=gnu11"],
};
const CPP: Compiler = Compiler {
    language: "cpp",
    extension: "cpp",
    command: &["c++", "-std=c++17"],
};
/// For coroutines.
const CPP20: Compiler = Compiler {
    command: &["c++", "-std=c++20"],
    ..CPP
};
const SANITIZED: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Compiles an example with the header, and links it with the library; where the program is.
fn compiled(name: &str, compiler: &Compiler, options: &[&str]) -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Compiler {
        language,
        extension,
        command,
    } = compiler;
    let source = examples.join(language).join(format!("{name}.{extension}"));
    let to = compile(
        &examples.join("../faces/c/include"),
        &source,
        &format!("{name}-{language}{}", options.len()),
        &[command, options].concat(),
    );
    to.into_os_string().into_string().unwrap()
}

/// Runs a scene with every pair of the programs, which are one example in several languages: the
/// first of a pair serves.
fn every_pair(
    name: &str,
    in_rust: &str,
    compilers: &[Compiler],
    scene: impl Fn(&Stage, &str, &str),
) {
    let mut programs = vec![("rust", in_rust.to_owned())];
    for compiler in compilers {
        programs.push((compiler.language, compiled(name, compiler, &[])));
    }
    for (server_language, server) in &programs {
        for (client_language, client) in &programs {
            let stage = Stage::new(&format!("{name}-{server_language}-{client_language}"));
            scene(&stage, server, client);
        }
    }
    // In the languages without a watch over memory of their own, with one.
    for compiler in compilers {
        let program = compiled(name, compiler, &SANITIZED);
        let stage = Stage::new(&format!("{name}-{}-sanitized", compiler.language));
        scene(&stage, &program, &program);
    }
}

fn revocation(stage: &Stage, server: &str, client: &str) {
    let server = stage.start(server, &["serve", "2"]);
    assert_eq!(stage.run(client, &["ask", "public"]), "come in\n");
    // Both calls fail: the one that it is dismissed for, and one that others may make.
    let dismissed = stage.run(client, &["ask", "secret", "public"]);
    let failed = |line: &str| line.contains("door/service");
    assert!(dismissed.lines().all(failed), "{dismissed}");
    assert_eq!(dismissed.lines().count(), 2, "{dismissed}");
    assert_eq!(stage.run(client, &["ask", "public"]), "come in\n");
    let said = server.end();
    assert!(said.contains("is dismissed"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn bouncer() {
    every_pair(
        "bouncer",
        env!("CARGO_BIN_EXE_bouncer"),
        &[C, CPP],
        revocation,
    );
}

fn records(stage: &Stage, collector: &str, sender: &str) {
    let mut lines: String = (0..1000).map(|number| format!("line {number}\n")).collect();
    lines += "\n";
    lines += &"long ".repeat(50_000);
    lines += "\nlast\n";
    let collector = stage.start(collector, &["collect"]);
    stage.start_with(sender, &["send"], &lines).end();
    let collected = collector.end();
    assert!(collected == lines, "{} bytes came", collected.len());
}

#[test]
fn log() {
    every_pair("log", env!("CARGO_BIN_EXE_log"), &[C, CPP], records);
}

/// What cannot be read is not the end of the log, and what cannot be written is not collected.
#[test]
fn log_tells_of_input_and_output_that_fail() {
    let programs = [
        ("rust", env!("CARGO_BIN_EXE_log").to_owned()),
        ("c", compiled("log", &C, &[])),
        ("cpp", compiled("log", &CPP, &[])),
    ];
    // The first fits into what a library keeps before it writes; of the others much is written
    // before the last line.
    let inputs = ["one line\n".to_owned(), "line\n".repeat(5_000)];
    for (language, program) in &programs {
        let stage = Stage::new(&format!("log-{language}-unreadable"));
        let collector = stage.command(program, &["collect"]).spawn().unwrap();
        // A directory can be opened, but not read.
        let directory = std::fs::File::open(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut sends = stage.command(program, &["send"]);
        let sent = sends.stdin(directory).output().unwrap();
        assert!(!sent.status.success(), "{language}: sent a directory");
        let collected = collector.wait_with_output().unwrap();
        // In Rust a sender that goes is a stream that ends.
        let is_told = !collected.status.success();
        assert!(
            *language == "rust" || is_told,
            "{language}: took it for the end"
        );

        for (at, input) in inputs.iter().enumerate() {
            let stage = Stage::new(&format!("log-{language}-full-{at}"));
            let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
            let mut collects = stage.command(program, &["collect"]);
            let collector = collects.stdout(full.unwrap()).spawn().unwrap();
            // Whether the sender gets to its end depends on when the collector gives up.
            let mut sends = stage.command(program, &["send"]);
            let mut sender = sends.stdin(Stdio::piped()).spawn().unwrap();
            let _ = sender.stdin.take().unwrap().write_all(input.as_bytes());
            sender.wait_with_output().unwrap();
            let collected = collector.wait_with_output().unwrap();
            assert!(!collected.status.success(), "{language}: a full device");
        }
    }
}

/// A file, and what the digest of its digests is.
fn file_to_digest(stage_name: &str, bytes: usize, workers: usize) -> (PathBuf, String) {
    let data: Vec<u8> = (0..bytes as u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{stage_name} to digest"));
    std::fs::write(&path, &data).unwrap();
    let part_bytes = bytes.div_ceil(workers);
    let mut whole = Sha256::new();
    for number in 0..workers {
        let begin = bytes.min(number * part_bytes);
        whole.update(Sha256::digest(&data[begin..bytes.min(begin + part_bytes)]));
    }
    let whole = whole.finalize();
    let digits = whole.iter().map(|byte| format!("{byte:02x}"));
    (path, digits.collect())
}

fn digests(stage: &Stage, owner: &str, worker: &str) {
    for (bytes, workers) in [(1_000_003, 3), (2, 4), (0, 1)] {
        let (path, expected) = file_to_digest("a file", bytes, workers);
        let gathers = ["gather", path.to_str().unwrap(), &workers.to_string()];
        let working: Vec<Running> = (0..workers)
            .map(|_| stage.start(worker, &["work"]))
            .collect();
        assert_eq!(stage.run(owner, &gathers).trim_end(), expected);
        for worker in working {
            worker.end();
        }
    }
}

#[test]
fn digest() {
    every_pair("digest", env!("CARGO_BIN_EXE_digest"), &[C], digests);
}

fn pairs(stage: &Stage, owner: &str, writer: &str) {
    let owner = stage.start(owner, &["own", "5"]);
    let writers = [
        &["put", "tea=1", "tea=2", "milk=none"][..],
        &[
            "put",
            "salt=7",
            "a key of 24 bytes ......=a value of just 40 bytes ...............",
        ],
    ];
    for writer in writers.map(|arguments| stage.start(writer, arguments)) {
        writer.end();
    }
    let expected = "a key of 24 bytes ......=a value of just 40 bytes ...............\nmilk=none\nsalt=7\ntea=2\n";
    assert_eq!(owner.end(), expected);
}

#[test]
fn table() {
    every_pair("table", env!("CARGO_BIN_EXE_table"), &[C, CPP], pairs);
}

fn events(stage: &Stage, listener: &str, speaker: &str) {
    let listening = stage.start(listener, &["listen", "3"]);
    stage.run(speaker, &["say", "over here"]);
    stage.run(speaker, &["count", "7"]);
    stage.run(speaker, &["count", "8"]);
    let said = listening.end();
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["number 7", "number 8", "over here"]);
}

#[test]
fn tasks() {
    every_pair("tasks", env!("CARGO_BIN_EXE_tasks"), &[C, CPP20], events);
    // The loops in C and C++ wait for signals, too.
    for compiler in [C, CPP20] {
        let program = compiled("tasks", &compiler, &SANITIZED);
        let stage = Stage::new(&format!("signal-{}", compiler.language));
        let listening = stage.start(&program, &["listen", "9"]);
        stage.run(&program, &["count", "7"]);
        listening.signal_end();
        let said = listening.end();
        assert_eq!(said.lines().last(), Some("ended by a signal"), "{said}");
    }
}

/// Not through the macros, whose output the harness keeps to itself.
fn skip(why: &str) {
    let said = format!("SKIPPED: {why}\n");
    std::io::stderr().write_all(said.as_bytes()).unwrap();
}

#[test]
fn users() {
    if !rustix::process::getuid().is_root() {
        return skip("only root can be two users");
    }
    let programs = [
        env!("CARGO_BIN_EXE_users").to_owned(),
        compiled("users", &C, &[]),
    ];
    for (at, receiver) in programs.iter().enumerate() {
        for (other, sender) in programs.iter().enumerate() {
            let stage = Stage::new(&format!("users-{at}-{other}"));
            let receiving = stage.start(receiver, &["receive", "65534"]);
            stage.run(sender, &["send", "65534", "hello"]);
            assert_eq!(receiving.end(), "user 65534: hello\n");
        }
    }
}
