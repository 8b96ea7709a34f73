//! `hamlyn trace`: a program that is not changed, and what it exchanges with another host.

mod support;

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use rustix::process::Signal;
use support::{Pair, Room, Running, hamlyn, json, text};

/// Packets of a file: how many were sent, and how many came.
fn directions(file: &str) -> [usize; 2] {
    let mut reader = PcapNgReader::new(File::open(file).expect("a trace")).expect("pcap-ng");
    let mut counts = [0; 2];
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.expect("a block") {
            match packet.options[..] {
                [EnhancedPacketOption::Flags(2)] => counts[0] += 1,
                [EnhancedPacketOption::Flags(1)] => counts[1] += 1,
                ref other => panic!("{other:?}"),
            }
        }
    }
    counts
}

#[test]
fn what_goes_to_another_host_and_comes_from_it_is_written() {
    const TEST: &str = "trace-hosts";
    let (pair, room) = (Pair::new(), Room::new(TEST));
    let (secret, file) = (room.file("secret"), room.file("trace.pcapng"));
    let made = hamlyn(TEST, &["keygen", "secret", &secret]).output();
    assert!(made.expect("it starts").status.success());
    let mut command = hamlyn(TEST, &["ping", "--listen", "echo", "--secret", &secret]);
    let mut answering = Running::start(command.args(pair.be(0)));
    answering.says("answering");

    let program = env!("CARGO_BIN_EXE_hamlyn");
    let traced = ["trace", "--write", &file, "--", program, "ping", "red/echo"];
    let mut command = hamlyn(TEST, &traced);
    command.args(["--secret", &secret, "--count", "20", "--json"]);
    let output = command.args(pair.be(1)).output().expect("it starts");
    // What it prints, and how it ends, is the program's.
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(json(&output)["answered"], 20);
    assert!(text(&output.stderr).contains("bytes of packets"));
    let mode = File::open(&file).and_then(|file| file.metadata());
    assert_eq!(mode.expect("the file").permissions().mode() & 0o777, 0o600);
    // Each message is at least a frame, and each answer; more are acknowledgements.
    let [sent, came] = directions(&file);
    assert!(sent > 20 && came > 20, "{sent} sent, {came} came");

    let script = room.file("hamlyn.lua");
    let printed = hamlyn(TEST, &["trace", "--dissector"]).output();
    std::fs::write(&script, printed.expect("it starts").stdout).expect("written");
    let lua = format!("lua_script:{script}");
    let output = Command::new("tshark")
        .args(["-X", &lua, "-r", &file, "-T", "fields"])
        .args([
            "-e",
            "hamlyn.sent",
            "-e",
            "hamlyn.packets",
            "-e",
            "hamlyn.malformed",
        ])
        .output();
    let Ok(output) = output else {
        println!("SKIPPED: there is no tshark here; the trace is not read with it");
        return;
    };
    let shown = text(&output.stdout);
    assert!(
        !text(&output.stderr).contains("lua:"),
        "{}",
        text(&output.stderr)
    );
    let with_packets = |line: &&str| {
        line.split('\t')
            .nth(1)
            .is_some_and(|packets| packets == "1")
    };
    assert!(shown.lines().filter(with_packets).count() >= 40, "{shown}");
    assert!(shown.lines().all(|line| line.ends_with('\t')), "{shown}");
}

#[test]
fn a_program_ends_as_it_would_alone_and_what_is_no_trace_is_kept() {
    const TEST: &str = "trace-end";
    let room = Room::new(TEST);
    let file = room.file("trace.pcapng");
    let trace = |more: &[&str]| {
        let arguments = [&["trace", "-w", &file], more].concat();
        hamlyn(TEST, &arguments).output().expect("it starts")
    };
    let output = trace(&["--", "sh", "-c", "exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(text(&output.stderr).contains("no packet"));
    assert_eq!(directions(&file), [0, 0]);
    let output = trace(&["--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(output.status.code(), Some(137));
    let output = trace(&["--append", "--quiet", "--", "true"]);
    assert!(output.status.success() && output.stderr.is_empty());
    std::fs::write(&file, "mine").expect("written");
    let output = trace(&["--", "touch", &room.file("begun")]);
    assert!(!output.status.success());
    assert_eq!(std::fs::read(&file).expect("kept"), b"mine");
    assert!(
        File::open(room.file("begun")).is_err(),
        "the program was begun"
    );
}

#[test]
fn ending_the_trace_ends_the_program() {
    const TEST: &str = "trace-signal";
    let room = Room::new(TEST);
    let file = room.file("trace.pcapng");
    let program = ["--", "sh", "-c", "echo begun >&2; exec sleep 1000"];
    let arguments = [&["trace", "-w", &file], &program[..]].concat();
    let mut tracing = Running::start(&mut hamlyn(TEST, &arguments));
    tracing.says("begun");
    tracing.send(Signal::TERM);
    // Its standard error ends with the last that has it: the program.
    assert_eq!(tracing.ends().status.code(), Some(143));
}

/// A trace that cannot be written is an error of the program that was to be traced, before it says
/// anything to anybody.
#[test]
fn a_program_that_cannot_be_traced_says_so() {
    const TEST: &str = "trace-refused";
    let (pair, room) = (Pair::new(), Room::new(TEST));
    let mut command = hamlyn(TEST, &["ping", "nobody", "--wait", "0", "--insecure"]);
    command
        .args(pair.be(0))
        .env("HAMLYN_TRACE", room.file("no/such/place"));
    let output = command.output().expect("it starts");
    assert!(!output.status.success());
    assert!(
        text(&output.stderr).contains("no trace in"),
        "{}",
        text(&output.stderr)
    );
}
