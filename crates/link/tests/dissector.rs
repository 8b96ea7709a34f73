//! The dissector for Wireshark, by tshark: what `docs/protocol.md` says of its vectors is what is
//! shown, and of damaged frames exactly those are marked that the transport counts as malformed.
//! Skipped aloud where there is no tshark.

#[allow(dead_code, reason = "shared with tests that use the rest")]
mod vectors;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use hamlyn_engine::transport::{Association, Settings};
use hamlyn_link::trace::{TapSettings, Trace};
use vectors::{number, read};

/// A trace of these frames, removed at its end.
struct Traced(PathBuf);

impl Traced {
    /// Nothing, if there is no tshark.
    fn new(test: &str, frames: &[Vec<u8>]) -> Option<Self> {
        let found = Command::new("tshark").arg("--version").output();
        if !found.is_ok_and(|output| output.status.success()) {
            println!("SKIPPED: there is no tshark here; the dissector is not checked");
            return None;
        }
        let name = format!("dissector-{test}-{}.pcapng", std::process::id());
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_file(&file);
        let tap = Arc::new(Trace::open(&file).expect("a trace")).tap(TapSettings {
            own_association: 0x8123_000b,
            peer_association: 0x8000_0001,
            peer_interface: 0x0123_4567_89ab_cdef,
            peer_host: 7,
            peer_user: 1000,
            is_encrypted: true,
        });
        let (here, there) = ("192.0.2.1:40000", "192.0.2.2:50000");
        let (here, there) = (here.parse().expect("one"), there.parse().expect("one"));
        for frame in frames {
            tap.sent(2, here, there, frame);
        }
        Some(Self(file))
    }

    /// What tshark prints; fails if the dissector does.
    fn tshark(&self, arguments: &[&str]) -> String {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../faces/cli/wireshark/hamlyn.lua");
        let mut command = Command::new("tshark");
        command.arg("-X");
        command.arg(format!("lua_script:{}", script.display()));
        let output = command.arg("-r").arg(&self.0).args(arguments).output();
        let output = output.expect("tshark runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        for line in said.lines().chain(printed.lines()) {
            assert!(
                !line.contains("Lua Error") && !line.contains("hamlyn.lua:"),
                "{line}"
            );
        }
        printed
    }

    /// For each frame the values of these fields, those of one field joined by commas.
    fn fields(&self, fields: &[&str]) -> Vec<Vec<String>> {
        let mut arguments = vec!["-T", "fields", "-E", "separator=|", "-E", "occurrence=a"];
        for field in fields {
            arguments.extend(["-e", field]);
        }
        let printed = self.tshark(&arguments);
        let lines = printed.lines();
        lines
            .map(|line| line.split('|').map(str::to_owned).collect())
            .collect()
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The frames of the vectors of one kind.
fn frames(kind: &str) -> Vec<Vec<u8>> {
    let vectors = read(&[kind]);
    vectors.iter().map(|vector| vector.bytes("bytes")).collect()
}

/// What a vector says of its packets.
fn packets(vector: &vectors::Vector) -> Vec<Vec<(String, String)>> {
    vector
        .all("packet")
        .into_iter()
        .map(|packet| {
            let said = packet.split(", ").map(|field| {
                let (name, value) = field.split_once(' ').expect("a name and a value");
                (name.to_owned(), value.to_owned())
            });
            said.collect()
        })
        .collect()
}

fn joined<T: ToString>(values: impl Iterator<Item = T>) -> String {
    let values: Vec<String> = values.map(|value| value.to_string()).collect();
    values.join(",")
}

#[test]
fn the_packets_of_the_vectors_come_out_right() {
    let vectors = read(&["frame"]);
    let Some(traced) = Traced::new("vectors", &frames("frame")) else {
        return;
    };
    let shown = traced.fields(&[
        "hamlyn.packet.slot",
        "hamlyn.packet.index",
        "hamlyn.packet.key",
        "hamlyn.packet.offset",
        "hamlyn.packet.word",
        "hamlyn.packet.data",
        "hamlyn.packets",
        "hamlyn.channel",
        "hamlyn.timestamp",
        "hamlyn.packet.metadata",
        "ip.src",
        "hamlyn.peer.interface",
    ]);
    assert_eq!(shown.len(), vectors.len());
    for (vector, shown) in vectors.iter().zip(&shown) {
        let packets = packets(vector);
        let each = |name: &str| {
            let mut values = Vec::new();
            for packet in &packets {
                let found = packet.iter().find(|(of, _)| of == name);
                values.push(found.map(|(_, value)| value.clone()));
            }
            values
        };
        let numbers = |name: &str| {
            each(name)
                .into_iter()
                .map(|value| value.map_or(0, |value| number(&value)))
        };
        let hexadecimal =
            |name, width: usize| joined(numbers(name).map(|value| format!("0x{value:0width$x}")));
        let line = vector.line;
        assert_eq!(shown[0], hexadecimal("slot", 8), "line {line}");
        assert_eq!(shown[1], joined(numbers("index")), "line {line}");
        assert_eq!(shown[2], hexadecimal("key", 16), "line {line}");
        assert_eq!(shown[3], joined(numbers("offset")), "line {line}");
        // A packet whose word is metadata has none.
        if each("metadata").iter().all(Option::is_none) || packets.len() > 1 {
            assert_eq!(shown[4], hexadecimal("word", 16), "line {line}");
        }
        assert_eq!(
            shown[5],
            joined(each("data").into_iter().flatten()),
            "line {line}"
        );
        assert_eq!(shown[6], packets.len().to_string(), "line {line}");
        assert_eq!(shown[7], "0", "line {line}");
        assert_eq!(shown[8], (vector.number("time") / 64).to_string());
        assert_eq!(shown[9], joined(each("metadata").into_iter().flatten()));
        assert_eq!(shown[11], "0x0123456789abcdef");
    }
}

#[test]
fn the_answers_of_the_vectors_come_out_right() {
    let Some(traced) = Traced::new("answers", &frames("answer")) else {
        return;
    };
    let shown = traced.fields(&[
        "hamlyn.run.count",
        "hamlyn.nack.reason",
        "hamlyn.refused.first",
        "hamlyn.refused.reason",
        "hamlyn.flags.closing",
        "hamlyn.hold",
        "hamlyn.sent",
    ]);
    let expected = [
        // taken; refused: the second packet, for a wrong key; no room; leaving; not resident;
        // closed.
        ["1", "", "", "", "0", "30", "1"],
        ["", "0", "1", "5", "0", "30", "1"],
        ["", "1", "", "", "0", "30", "1"],
        ["", "4", "", "", "0", "30", "1"],
        ["", "2", "", "", "0", "0", "1"],
        ["", "", "", "", "1", "0", "1"],
    ];
    let shown: Vec<Vec<String>> = shown
        .into_iter()
        .map(|values| {
            // Truth is said in digits or in words, as the version of tshark has it.
            let plain = |value: String| value.replace("True", "1").replace("False", "0");
            values.into_iter().map(plain).collect()
        })
        .collect();
    assert_eq!(shown, expected);
}

/// Whether the transport finds it malformed; nothing if that depends on what no reader of a trace
/// knows.
fn is_malformed(frame: &[u8]) -> Option<bool> {
    let mut association = Association::new(Settings::default()).expect("settings");
    let channels = association.settings().channels;
    if let Some(&[low, high, s0, s1, s2, s3]) = frame.get(10..16) {
        let channel = u16::from_le_bytes([low, high]);
        let is_fresh = i32::from_le_bytes([s0, s1, s2, s3]) > 0;
        // Packets of a frame that is not fresh are not looked at.
        if channel != u16::MAX && (channel >= channels || !is_fresh) {
            return None;
        }
    }
    // The association has parsed a frame that it counted; the packets are discarded.
    let _ = association.take_frame(1_000_000, 0, frame);
    Some(association.statistics().malformed > 0)
}

#[test]
fn damaged_frames_are_marked_and_no_others() {
    let mut damaged = Vec::new();
    for frame in [frames("frame"), frames("answer"), frames("no-frame")].concat() {
        for length in 1..frame.len() {
            damaged.push(frame[..length].to_vec());
        }
        for at in 0..frame.len() {
            for change in [0x01, 0x40, 0x80, 0xff] {
                let mut other = frame.clone();
                other[at] ^= change;
                damaged.push(other);
            }
        }
        damaged.push(frame);
    }
    let judged: Vec<Option<bool>> = damaged.iter().map(|frame| is_malformed(frame)).collect();
    for kind in [true, false] {
        // Or this test says nothing.
        assert!(
            judged
                .iter()
                .filter(|judged| **judged == Some(kind))
                .count()
                > 100
        );
    }
    let Some(traced) = Traced::new("damaged", &damaged) else {
        return;
    };
    // All of it is looked at, so that an error of the script anywhere shows.
    traced.tshark(&["-V"]);
    let marked = traced.tshark(&[
        "-Y",
        "hamlyn.malformed",
        "-T",
        "fields",
        "-e",
        "frame.number",
    ]);
    let marked: Vec<usize> = marked
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    for (index, judged) in judged.iter().enumerate() {
        let is_marked = marked.binary_search(&(index + 1)).is_ok();
        if let Some(judged) = judged {
            assert_eq!(is_marked, *judged, "{:02x?}", damaged[index]);
        }
    }
}
