//! `hamlyn-lab bench --json` has a row for each figure that it promises, and each is a number. How
//! large the numbers are says the machine, not a test.

use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// What was measured of this part.
fn measured(part: &[&str]) -> Option<Value> {
    if !std::thread::available_parallelism().is_ok_and(|many| many.get() >= 2) {
        // Not through the macros, whose output the harness keeps to itself.
        use std::io::Write;
        let said = b"SKIPPED: a benchmark needs two processors\n";
        std::io::stderr().write_all(said).expect("standard error");
        return None;
    }
    // One after the other: each wants both processors.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new(env!("CARGO_BIN_EXE_hamlyn-lab"))
        .arg("bench")
        .args(part)
        .args(["--trial", "--json"])
        .stdin(Stdio::null())
        .output()
        .expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{part:?}: {said}");
    Some(serde_json::from_slice(&output.stdout).expect("a JSON object"))
}

/// What was measured of this part, which has these pictures.
fn drawn(part: &[&str], pictures: &[&str]) -> Option<Value> {
    let name = format!("hamlyn-figures{}-{}", part.join(""), std::process::id());
    let directory = std::env::temp_dir().join(name);
    let place = directory.to_str().expect("a path of text");
    let measured = measured(&[part, &["--plot", place]].concat())?;
    for name in pictures {
        let picture = std::fs::read_to_string(directory.join(name)).expect("a picture");
        assert!(
            picture.starts_with("<svg") && picture.contains("polyline"),
            "{name}"
        );
    }
    std::fs::remove_dir_all(&directory).expect("the pictures are ours to remove");
    Some(measured)
}

/// Every part says on what it was measured.
fn says_on_what(measured: &Value) {
    let processor = measured["processor"].as_str().expect("text");
    assert!(!processor.is_empty());
    let state = measured["state"].as_str().expect("text");
    assert!(["near", "far", "moved"].contains(&state), "{state}");
    assert!(
        measured["load_before"]
            .as_f64()
            .is_some_and(|load| load >= 0.0)
    );
    let raw = number(&measured["raw_handoff_ns"]);
    let range = &measured["raw_handoff_range_ns"];
    assert!(number(&range[0]) <= raw && raw <= number(&range[1]));
}

fn number(value: &Value) -> f64 {
    let number = value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"));
    assert!(number > 0.0 && number.is_finite(), "{number}");
    number
}

/// The object has a number under each of these names, and nothing else.
fn numbers(object: &Value, names: &[&str]) {
    let object = object.as_object().expect("an object");
    for name in names {
        number(
            object
                .get(*name)
                .unwrap_or_else(|| panic!("no {name} in {object:?}")),
        );
    }
    assert_eq!(object.len(), names.len(), "{object:?}");
}

const SHORT: [&str; 12] = [
    "0", "1", "8", "16", "24", "32", "33", "56", "64", "128", "256", "512",
];

#[test]
fn one_way_has_a_row_for_each_protocol_and_length() {
    let protocols = [
        "fast_mode",
        "tagged_write",
        "datagram",
        "stream",
        "port",
        "mailbox",
    ];
    for protocol in protocols {
        let Some(measured) = drawn(&["--only", protocol], &["one-way.svg"]) else {
            return;
        };
        says_on_what(&measured);
        for figure in ["one_way_over_raw", "one_way_ns"] {
            numbers(&measured[figure][protocol], &SHORT);
            if protocol == "fast_mode" {
                numbers(&measured[figure]["copied"], &["1024", "4096"]);
                numbers(&measured[figure]["direct"], &["1024", "4096"]);
            }
        }
    }
}

#[test]
fn request_and_reply_have_a_row_for_each_length() {
    let Some(measured) = measured(&["--request-reply"]) else {
        return;
    };
    says_on_what(&measured);
    for figure in [
        "request_reply_over_raw",
        "request_reply_ns",
        "service_over_raw",
        "service_ns",
    ] {
        numbers(&measured[figure], &["0", "8", "16", "24"]);
    }
}

#[test]
fn one_sided_reads_stand_beside_hand_offs_and_changes_beside_locked_additions() {
    let pictures = ["one-sided-reads.svg", "one-sided-changes.svg"];
    let Some(measured) = drawn(&["--one-sided"], &pictures) else {
        return;
    };
    says_on_what(&measured);
    let reads = measured["one_sided"]["reads"].as_array().expect("rows");
    let of = |strategy: &str, target: &str, way: &str| {
        let is_it = |row: &&Value| {
            row["strategy"] == strategy && row["target"] == target && row["way"] == way
        };
        let rows: Vec<&Value> = reads.iter().filter(is_it).collect();
        for row in &rows {
            number(&row["read_ns"]);
            number(&row["over_two_hand_offs"]);
        }
        let lengths = rows.iter().map(|row| row["length_bytes"].as_u64());
        lengths.collect::<Option<Vec<_>>>().expect("lengths")
    };
    const LENGTHS: [u64; 6] = [4, 8, 16, 64, 256, 4096];
    for way in ["packets", "direct"] {
        assert_eq!(of("proc", "attends", way), LENGTHS);
    }
    for strategy in ["np", "inject", "receive"] {
        for target in ["attends", "computes"] {
            assert_eq!(of(strategy, target, "packets"), LENGTHS);
        }
    }
    let changes = measured["one_sided"]["changes"].as_array().expect("rows");
    let processes: Vec<_> = changes
        .iter()
        .map(|row| row["processes"].as_u64())
        .collect();
    assert_eq!(processes, [1, 2, 4, 8].map(Some));
    for row in changes {
        for figure in [
            "by_packets_per_s",
            "direct_per_s",
            "plain_per_s",
            "direct_over_plain",
        ] {
            number(&row[figure]);
        }
    }
}

#[test]
fn split_c_has_a_row_for_each_operation_size_and_number_of_processors() {
    let pictures = [
        "splitc-updates.svg",
        "splitc-bulk-get.svg",
        "splitc-bulk-store.svg",
        "splitc-polling.svg",
    ];
    let Some(measured) = drawn(&["--splitc"], &pictures) else {
        return;
    };
    let all = measured["splitc"].as_object().expect("an object");
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    assert_eq!(names, ["direct", "inject", "np", "proc", "receive"]);
    let operations = ["get", "put", "store"];
    let gaps = ["overhead", "gap", "gap to two", "gap in exchange"];
    let mut rows = ["atomic", "read", "write"]
        .map(|what| format!("round trip: {what}"))
        .to_vec();
    for gap in gaps {
        rows.extend(operations.map(|operation| format!("{gap}: {operation}")));
    }
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    for (name, figures) in all {
        numbers(&figures["times_ns"], &rows);
        let bandwidth = figures["bandwidth"].as_object().expect("an object");
        assert_eq!(bandwidth.len(), 2, "{bandwidth:?}");
        for operation in ["bulk get", "bulk store"] {
            let sizes = pairs(&bandwidth[operation]);
            assert_eq!(
                sizes,
                [8, 64, 512, 2048, 8192, 32_768, 131_072, 524_288, 2_097_152]
            );
        }
        assert_eq!(
            pairs(&figures["polling_us"]),
            [1, 10, 50, 200, 1_000, 4_000]
        );
        number(&figures["not_polling_us"]);
        let updates = figures["updates"].as_array().expect("rows");
        let mut cases = Vec::new();
        for row in updates {
            number(&row["updates_per_s"]);
            // The locked instruction alone reaches what is mapped, and nothing else.
            for figure in ["plain_updates_per_s", "over_plain"] {
                match name.as_str() {
                    "direct" => _ = number(&row[figure]),
                    _ => assert!(row[figure].is_null(), "{row}"),
                }
            }
            cases.push((row["processors"].as_u64(), row["table_bytes"].as_u64()));
        }
        let expected = [1, 2, 4, 8].map(|processors| {
            [64 << 10, 4 << 20, 64 << 20].map(|bytes| (Some(processors), Some(bytes)))
        });
        assert_eq!(cases, expected.concat());
    }
}

/// The first of each pair; the second is a number.
fn pairs(rows: &Value) -> Vec<u64> {
    let rows = rows.as_array().expect("rows").iter();
    rows.map(|row| {
        number(&row[1]);
        row[0].as_u64().expect("a size")
    })
    .collect()
}

#[test]
fn loaned_messages_have_a_row_for_each_length_and_number_of_readers() {
    let Some(measured) = measured(&["--loans"]) else {
        return;
    };
    says_on_what(&measured);
    for length in ["64", "4096", "65536", "4194304"] {
        numbers(&measured["loan_ns"][length], &["1", "7"]);
    }
}

#[test]
fn messages_a_second_stand_beside_raw_cells() {
    let Some(measured) = drawn(&["--rate"], &["rate.svg"]) else {
        return;
    };
    says_on_what(&measured);
    let over_raw = &measured["messages_over_raw_cells"];
    number(&over_raw["one_call_each"]);
    number(&over_raw["many_in_a_call"]);
    for length in ["0", "8", "16", "32"] {
        numbers(
            &over_raw["by_length"][length],
            &["one_call_each", "many_in_a_call"],
        );
    }
    assert_eq!(
        over_raw["by_length"]["16"]["one_call_each"],
        over_raw["one_call_each"]
    );
    for length in ["0", "8", "16", "32", "64", "256", "1024", "4096"] {
        for row in ["one_call_each", "many_in_a_call", "raw_cells"] {
            numbers(&measured["message_rates"][length][row], &["median", "best"]);
        }
    }
}

#[test]
fn long_messages_stand_beside_raw_copies_at_every_size() {
    let Some(measured) = drawn(&["--large"], &["bandwidth.svg", "bandwidth-fresh.svg"]) else {
        return;
    };
    says_on_what(&measured);
    let sizes = [
        "4096", "65536", "1048576", "4194304", "16777216", "67108864",
    ];
    for buffers in [&measured, &measured["fresh_buffers"]] {
        for row in [
            "copied_over_raw_two_copy",
            "direct_over_raw_put",
            "copied_bytes_per_s",
            "direct_bytes_per_s",
            "gathered_over_raw_put",
            "gathered_bytes_per_s",
            "raw_two_copy_bytes_per_s",
            "raw_put_bytes_per_s",
            "memcpy_bytes_per_s",
        ] {
            numbers(&buffers[row], &sizes);
        }
    }
    numbers(
        &measured["copied_after_4_mib_over_settled"],
        &["4096", "65536", "1048576"],
    );
}

#[test]
fn the_faces_stand_beside_each_other() {
    let Some(measured) = measured(&["--faces"]) else {
        return;
    };
    let rows = measured["faces"].as_array().expect("rows");
    let lengths: Vec<_> = rows.iter().map(|row| &row["length_bytes"]).collect();
    assert_eq!(lengths, [8, 64, 1_024, 16_384, 262_144]);
    for row in rows {
        // Python only where its package is installed.
        for face in ["Rust", "C"] {
            number(&row["one_way_ns"][face]);
        }
    }
}
