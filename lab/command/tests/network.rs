//! The benchmark between two hosts.

use std::process::Command;

#[test]
fn the_benchmark_between_hosts_measures_all_that_it_names() {
    let processors = std::thread::available_parallelism().expect("a number of processors");
    if processors.get() < 2 {
        eprintln!("SKIPPED: two processors are needed");
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_hamlyn-lab"))
        .args(["bench", "--network", "--trial", "--json"])
        .output()
        .expect("the command starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let network = &all["network"];
    let is_figure = |figure: &serde_json::Value| figure.as_f64().is_some_and(|value| value > 0.0);
    for name in ["udp_raw_one_way_ns", "udp_raw_bytes_per_s"] {
        assert!(is_figure(&network[name]), "{name}: {network}");
    }
    for name in ["one_way_ns", "bytes_per_s", "messages_per_s"] {
        for protection in ["clear", "encrypted"] {
            assert!(is_figure(&network[name][protection]), "{name}: {network}");
        }
    }
    let losses = network["loss"].as_array().expect("losses");
    assert_eq!(losses.len(), 2 * 2 * 6, "{network}");
    assert!(
        losses
            .iter()
            .all(|loss| is_figure(&loss["bytes_per_s"]["median"]))
    );
    let goals = network["goals"].as_array().expect("goals");
    assert!(
        goals.iter().all(|goal| goal["met"].is_boolean()),
        "{network}"
    );
    // Without rights it says where it was measured instead.
    let is_elsewhere = network["place"] == "loopback";
    assert_eq!(
        is_elsewhere,
        network["why_no_wire"].is_string(),
        "{network}"
    );
}
