//! Some seconds of the soak of several hosts. `make hunt` takes a minute, `make soak-hosts` an
//! hour.

use std::process::{Command, Stdio};

fn soak(arguments: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_hamlyn-lab"))
        .args(["soak", "--json"])
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("the command starts");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stdout)));
    assert!(output.status.success(), "{said:#}");
    assert_eq!(said["faults"], serde_json::json!([]));
    // Each host has a connection to each other one.
    let count = |what: &str| said[what].as_u64().unwrap_or_default();
    assert!(count("connections_checked") >= count("hosts") * (count("hosts") - 1));
    assert!(count("messages") > 1_000, "{said:#}");
    for pair in said["pairs"].as_array().expect("pairs") {
        let count = |what: &str| pair[what].as_u64().expect("a number");
        assert!(count("messages") > 1_000, "{pair:#}");
        assert!(
            count("present_bytes") <= 64 << 10 && count("waiting_bytes") == 0,
            "{pair:#}"
        );
    }
    said
}

/// Of this seed, which cuts one cable for so long that links end.
/// In namespaces joined by cables, as root; for others on the loopback device, which is said aloud.
#[test]
fn five_hosts_lose_nothing_through_kills_stops_and_cuts() {
    let said = soak(&["--for", "18", "--seed", "7"]);
    assert!(said["kills"].as_u64() > Some(0) && said["stops"].as_u64() > Some(0));
    let pairs = said["pairs"].as_array().expect("pairs");
    assert_eq!(pairs.len(), 2);
    for pair in pairs {
        let count = |what: &str| pair[what].as_u64().expect("a number");
        assert!(count("stops") > 0 && count("episodes") > 0, "{pair:#}");
        // The messages that waited while it was stopped have been in memory.
        assert!(count("spilled_bytes") > 1 << 20, "{pair:#}");
        assert!(count("most_present_bytes") > 64 << 10, "{pair:#}");
        assert!(count("most_pages") > 16, "{pair:#}");
    }
    assert_eq!(
        said["cuts"].as_u64() > Some(0),
        said["has_cables"].as_bool() == Some(true)
    );
}

#[test]
fn addresses_of_the_loopback_device_do_in_the_clear() {
    let said = soak(&[
        "--loopback",
        "--insecure",
        "--calm",
        "--hosts",
        "3",
        "--for",
        "3",
    ]);
    assert_eq!(said["has_cables"], false);
    let pairs = said["pairs"].as_array().expect("pairs");
    assert!(pairs.iter().all(|pair| pair["stops"] == 0), "{said:#}");
    assert_eq!(said["connections_lost"], 0);
}
