//! The command as people and programs use it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn hamlyn(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hamlyn"));
    // So that tests that run at the same time do not meet.
    command
        .args(arguments)
        .env("HAMLYN_NAMESPACE", format!("cli-{}", std::process::id()));
    command
}

fn run(arguments: &[&str]) -> Output {
    hamlyn(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the command starts")
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn demo_shows_that_all_of_it_holds() {
    let output = run(&["demo", "--megabytes", "16", "--json"]);
    let shown = json(&output);
    assert_eq!(shown["ok"], true, "{shown:#}");
    assert!(output.status.success());
    let steps = shown["steps"].as_array().expect("steps");
    // With the hosts, or with the reason why there are none.
    let skipped = steps.iter().filter(|step| step["skipped"] == true).count();
    if skipped > 0 {
        println!("SKIPPED: {}", steps[7]["outcome"]);
    }
    assert_eq!(steps.len(), if skipped > 0 { 8 } else { 12 }, "{shown:#}");
    assert!(skipped <= 1);
    let held = steps.iter().filter(|step| step["ok"] == true).count();
    assert_eq!(held + skipped, steps.len());
}

/// Bytes that are not the same everywhere.
fn some_bytes(length: usize) -> Vec<u8> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

fn piped(name: &str, bytes: Vec<u8>, sender_first: bool) {
    let start_receiver = || {
        hamlyn(&["pipe", "--listen", name])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the receiver starts")
    };
    let start_sender = || {
        let mut sender = hamlyn(&["pipe", name, "--wait", "60"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("the sender starts");
        let mut input = sender.stdin.take().expect("its input");
        let bytes = bytes.clone();
        (sender, std::thread::spawn(move || input.write_all(&bytes)))
    };
    let ((mut sender, feeder), receiver) = if sender_first {
        let sender = start_sender();
        (sender, start_receiver())
    } else {
        let receiver = start_receiver();
        (start_sender(), receiver)
    };
    let output = receiver.wait_with_output().expect("the receiver ends");
    feeder
        .join()
        .expect("the feeder ends")
        .expect("the sender takes its input");
    assert!(sender.wait().expect("the sender ends").success());
    assert!(output.status.success());
    assert!(
        output.stdout == bytes,
        "{} of {} bytes, or others",
        output.stdout.len(),
        bytes.len()
    );
}

#[test]
fn pipe_carries_every_byte() {
    piped("large", some_bytes(20 << 20), false);
}

#[test]
fn pipe_waits_for_its_receiver() {
    piped("late", some_bytes(100_000), true);
}

#[test]
fn pipe_carries_nothing_too() {
    piped("empty", Vec::new(), false);
}

#[test]
fn pipe_to_nobody_fails_and_says_so() {
    let output = run(&["pipe", "nobody", "--wait", "0"]);
    assert!(!output.status.success());
    assert!(
        text(&output.stderr).contains("nobody"),
        "{}",
        text(&output.stderr)
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn pipe_name_is_held_by_one() {
    let mut first = hamlyn(&["pipe", "--listen", "held"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the first starts");
    let mut second = hamlyn(&["pipe", "--listen", "held"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the second starts");
    // Whichever of the two came later ends at once.
    let refused = loop {
        if let Some(status) = first.try_wait().expect("asking") {
            std::mem::swap(&mut first, &mut second);
            break status;
        }
        if let Some(status) = second.try_wait().expect("asking") {
            break status;
        }
        std::thread::yield_now();
    };
    first.kill().expect("killing the receiver");
    first.wait().expect("it is gone");
    assert!(!refused.success());
}

#[test]
fn pipe_whose_receiver_is_killed_fails() {
    let mut receiver = hamlyn(&["pipe", "--listen", "doomed"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the receiver starts");
    let mut sender = hamlyn(&["pipe", "doomed", "--wait", "60"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the sender starts");
    let mut input = sender.stdin.take().expect("its input");
    // More than everything between the two can hold, as nobody reads the receiver's output.
    let feeder = std::thread::spawn(move || while input.write_all(&[1; 65536]).is_ok() {});
    let mut first = [0];
    std::io::Read::read_exact(&mut receiver.stdout.take().expect("its output"), &mut first)
        .expect("something arrives");
    receiver.kill().expect("killing the receiver");
    receiver.wait().expect("it is gone");
    let output = sender.wait_with_output().expect("the sender ends");
    feeder.join().expect("the feeder ends");
    assert!(!output.status.success());
    assert!(
        text(&output.stderr).contains("gone"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn doctor_finds_this_machine_fit() {
    let output = run(&["doctor", "--json"]);
    let found = json(&output);
    assert_eq!(found["ok"], true, "{found:#}");
    assert!(output.status.success());
    let findings = found["findings"].as_array().expect("findings");
    for finding in findings {
        assert!(!finding["found"].as_str().expect("text").is_empty());
    }
    // Messages to a receiver that takes nothing have gone to its memory.
    let of = |subject| findings.iter().find(|it| it["subject"] == subject);
    let logs = of("overflow logs").expect("it looks at logs");
    assert_eq!(logs["verdict"], "good", "{logs:#}");
    let most = std::fs::read_to_string("/proc/sys/vm/max_map_count").expect("a limit");
    let mappings = of("mappings").expect("it looks at mappings");
    let said = mappings["found"].as_str().expect("text");
    assert!(said.starts_with(most.trim()), "{said}");
}

#[test]
fn wrong_arguments_are_errors() {
    for arguments in [&["pipe"][..], &["fly"], &["demo", "--megabytes", "0"]] {
        let output = run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(
            !output.stderr.is_empty() && output.stdout.is_empty(),
            "{arguments:?}"
        );
    }
}

/// A pipe that nobody reads.
fn unread() -> std::io::PipeWriter {
    std::io::pipe().expect("a pipe").1
}

/// What a process ends with that wrote to such a pipe, as a shell says it: 128 and the number of
/// SIGPIPE.
const NOBODY_READS: i32 = 141;

#[test]
fn commands_end_quietly_when_nobody_reads_what_they_print() {
    for arguments in [
        &["doctor"][..],
        &["doctor", "--json"],
        &["trace", "--dissector"],
        &["demo", "--megabytes", "1"],
    ] {
        let mut command = hamlyn(arguments);
        let output = command.stdin(Stdio::null()).stdout(unread()).output();
        let output = output.expect("the command starts");
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(NOBODY_READS), "{arguments:?}");
    }
}

#[test]
fn pipe_ends_quietly_when_nobody_reads_what_came() {
    let receiver = hamlyn(&["pipe", "--listen", "unread"])
        .stdin(Stdio::null())
        .stdout(unread())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the receiver starts");
    let mut sender = hamlyn(&["pipe", "unread", "--wait", "60"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the sender starts");
    let mut input = sender.stdin.take().expect("its input");
    // The sender may end before it has read all of it.
    let _ = input.write_all(&some_bytes(1 << 20));
    drop(input);
    let output = receiver.wait_with_output().expect("the receiver ends");
    sender.wait().expect("the sender ends");
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(NOBODY_READS));
}

#[test]
fn what_cannot_be_printed_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let output = hamlyn(&["doctor"])
        .stdout(full.expect("a device without room"))
        .output()
        .expect("the command starts");
    let said = text(&output.stderr);
    assert!(
        said.starts_with("hamlyn: writing standard output: "),
        "{said}"
    );
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn bench_measures_a_figure_for_each_length() {
    let processors = std::thread::available_parallelism().expect("a number of processors");
    let output = run(&["bench", "--json"]);
    if processors.get() < 2 {
        assert!(text(&output.stderr).contains("two processors are needed"));
        return;
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = json(&output);
    let is_figure = |value: &serde_json::Value| value.as_f64().is_some_and(|it| it > 0.0);
    assert!(is_figure(&report["raw_hand_off_ns"]), "{report}");
    let rows = report["datagram_one_way"].as_array().expect("rows");
    assert_eq!(rows.len(), 4, "{report}");
    for row in rows {
        assert!(
            is_figure(&row["ns"]) && is_figure(&row["over_raw"]),
            "{row}"
        );
    }
    let rows = report["stream"].as_array().expect("rows");
    assert_eq!(rows.len(), 3, "{report}");
    for row in rows {
        assert!(is_figure(&row["records_per_s"]), "{row}");
    }
}
