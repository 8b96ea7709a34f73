//! Instructions of a message, the library included, must not grow past what was committed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The sources of the C face.
const FACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../faces/c");

/// What is counted, and the most instructions that a send and a receive may take (of 16 bytes,
/// where no length is said): what was counted when the figure was committed, and half an
/// instruction. Lower them when the code got better: two instructions of each are the question
/// whether a link stays on this host; of the end points' calls five more are the flag that their
/// manager is in use (decision 0019). A copy of 4 KiB takes some 440 (decision 0025). The duplex
/// line took 4 to 9 of each send and up to 10 of each receive of a short message, 47 of a longer
/// one (decision 0028). Claiming lines takes 6 of a send, and 44 of one through the payload arena;
/// fetching cells ahead takes 7 to 9 of a receive (decision 0031). One-sided operations took 24 of
/// a receive by the general path, which looks for requests and for what others are to be answered,
/// 5 of one that lies in place, and 3 of a stream's record (decision 0037). Answering requests
/// sooner took 3 more of a receive by the general path, and 7 of one that lies in place. To compare
/// the count of forks takes 3 of each call (decision 42); a datagram and a record take two calls to
/// receive. A session took 4 of a send and 7 of a receive of the lower layer, which looks after
/// tasks that sleep, and 10 of a longer message; the fast paths of end points take as many as
/// before, and those of a record fewer (decision 47). A message of 64 bytes, which lies in two
/// cells, takes 59 and 150 fewer; to look there first takes up to 110 of a packet that does not
/// (decision 48). Since then a program of its own is counted, in which the
/// compiler made up to four more of a receive. Ports took 8 of a send of 4 KiB, as a packet is
/// asked whether it goes to one, and 34 of one to a region, which is a slot's (decision 49).
/// Regions took 21 of a send that is stored in place, which asks a table by links and a page that
/// only the owner writes, and 7 of its receive, which asks whether its sender shares memory and all
/// may place (decision 50). The half that threads share took up to 3 of a longer one, and 7 of one
/// to a region (decision 51). That cells may lie in an overflow log takes one of each send, and up
/// to 16 of a receive by the general path, whether there is a log or not (decision 53). Copies have
/// one more to spare, as the C library copies differently on different processors, and so has a
/// receive at a port, whose count moves with what else there is. A message of User Direct Messaging
/// is one to a port; its receive is a poll for one message with the handler that it runs, and a
/// section its beginning and end (decision 59). A request of Active Messages is sent with its share
/// of what brings credits and answers back, and received with the handler that it runs and with what
/// answers it; that long ones of a node share memory took 5 of its send (decision 54), and the
/// compiler makes up to four more of it in the program that calls; its count is another by half an
/// instruction from run to run. An idle link that begins to bring looks at one more flag, for
/// programs that signals interrupt (decision 66).
const MOST: [(&str, f64, f64); 16] = [
    ("fast_mode", 69.0, 92.6),
    ("tagged_write", 73.0, 94.0),
    ("datagram", 78.1, 192.9),
    ("stream", 126.8, 258.6),
    ("copied_64", 360.6, 421.4),
    ("copied_4096", 969.2, 1069.8),
    ("direct_4096", 869.8, 543.8),
    ("port", 84.0, 164.0),
    ("port_null", 79.0, 129.6),
    ("port_56", 111.0, 192.9),
    ("mailbox", 88.0, 150.8),
    ("udm_null", 154.8, 308.1),
    ("udm_14", 174.8, 404.1),
    ("udm_section", 23.4, 23.4),
    ("am_request", 585.9, 623.4),
    ("am_reply", 1018.1, 760.5),
];

/// What a call through C takes more than the same call of Rust: what was counted when the figure
/// was committed, and two instructions, as both counts move a little with what else a program has.
/// A datagram and a record take two calls to receive, the second of which gives the memory back.
/// Decision 39 says where the instructions go. The count of forks is compared by the handle and by
/// the manager beneath it, which takes 3 more of each call (decision 42).
const MOST_THROUGH_C: [(&str, f64, f64); 5] = [
    ("fast_mode", 41.1, 52.1),
    ("tagged_write", 32.0, 35.2),
    ("datagram", 14.0, 68.1),
    ("stream", 26.5, 83.0),
    ("mailbox", 26.0, 36.2),
];

/// The program as it is shipped: an instruction count says something of optimised code only.
fn shipped() -> PathBuf {
    let ours = Path::new(env!("CARGO_BIN_EXE_hamlyn-counted"));
    let target = ours
        .parent()
        .and_then(Path::parent)
        .expect("a target directory");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--locked"])
        .args(["--package", "hamlyn-counted"])
        .env("CARGO_TARGET_DIR", target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo starts");
    assert!(built.success(), "the program is not built");
    target.join("release").join("hamlyn-counted")
}

/// Whether there is that tool, which `package` has. Says aloud that nothing is counted if not.
fn has(tool: &str, package: &str) -> bool {
    let status = Command::new(tool)
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    let is_there = status.is_ok_and(|status| status.success());
    if !is_there {
        // Not through the macros, whose output the harness keeps to itself.
        let said = format!(
            "SKIPPED: instructions are not counted, there is no {tool} (apt-get install {package})\n"
        );
        let written = std::io::stderr().write_all(said.as_bytes());
        written.expect("standard error");
    }
    is_there
}

/// What the command counts: of a line that begins with these two words, all numbers.
fn numbers<const COUNT: usize>(counted: &str, what: &str, name: &str) -> [f64; COUNT] {
    let start = format!("{what} {name} ");
    let numbers = counted.lines().find_map(|line| line.strip_prefix(&start));
    let numbers = numbers.expect("a line").split(' ').map(str::parse);
    let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().expect("counts");
    numbers.try_into().expect("as many as there are to be")
}

/// What the command prints.
fn counted(arguments: &[&str]) -> String {
    let program = shipped();
    let target = program.ancestors().nth(2).expect("a target directory");
    let output = Command::new(&program)
        .args(arguments)
        // Where it builds what it counts.
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO", env!("CARGO"))
        // Cargo has its tests find libraries that are not optimized.
        .env_remove("LD_LIBRARY_PATH")
        .stdin(Stdio::null())
        .output()
        .expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).expect("lines of text")
}

#[test]
fn calls_through_c_take_no_more_instructions_than_committed() {
    if !has("valgrind", "valgrind") || !has("cc", "gcc") {
        return;
    }
    let counted = counted(&["c", FACE]);
    let mut too_many = Vec::new();
    for (protocol, send, receive) in MOST_THROUGH_C {
        for (what, most) in [("send", send), ("receive", receive)] {
            let [rust, c] = numbers(&counted, what, protocol);
            // Fewer would mean that something else was counted.
            assert!(
                rust >= 10.0 && c > rust,
                "{protocol}, {what}: {rust:.1}, {c:.1}"
            );
            if c - rust > most {
                too_many.push(format!(
                    "{what} of {protocol} through C: {:.1} more, at most {most}",
                    c - rust
                ));
            }
        }
    }
    assert!(too_many.is_empty(), "{too_many:#?}");
}

#[test]
fn messages_take_no_more_instructions_than_committed() {
    if !has("valgrind", "valgrind") {
        return;
    }
    let counted = counted(&[]);
    let mut too_many = Vec::new();
    for (protocol, send, receive) in MOST {
        for (what, most) in [("send", send), ("receive", receive)] {
            let [count] = numbers(&counted, what, protocol);
            // Fewer would mean that something else was counted.
            assert!(count >= 10.0, "{what} of {protocol}: {count:.1}");
            if count > most {
                too_many.push(format!("{what} of {protocol}: {count:.1}, at most {most}"));
            }
        }
    }
    assert!(too_many.is_empty(), "{too_many:#?}");
}
