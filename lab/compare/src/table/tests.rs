use super::*;
use crate::catalogue::{Places, catalogue};

/// A run in which the cores were near but for the UNIX socket.
const RAW: &str = r#"{"run":{"cores":[0,1],"date":"2026-11-21 13:26 UTC","kernel":"6.18","processor":"P","processors":2,"is_virtual":true,"memory_bytes":1073741824,"load":0.5,"quick":false,"rounds":2,"unavailable":{"nng":"no package"},"commit":"abc123","took_s":601,"versions":{"hamlyn":"1","zeromq":"4","ucx":"1.13","kernel":"6.18"}}}
{"figure":"one_way","messages":7,"ours":[100.0,100.0],"peer":"hamlyn_direct","raw_ns":[[60.0],[60.0]],"repeats":[0,0],"size_bytes":16,"steady":[true,true],"values":[50.0,50.0]}
{"figure":"one_way","messages":7,"ours":[100.0,200.0],"peer":"zeromq_ipc","raw_ns":[[60.0],[250.0]],"repeats":[0,0],"size_bytes":16,"steady":[true,true],"values":[2000.0,9000.0]}
{"figure":"one_way","messages":7,"ours":[100.0],"peer":"ucx_put","raw_ns":[[60.0]],"repeats":[0],"size_bytes":16,"steady":[true],"values":[40.0]}
{"figure":"one_way","messages":7,"ours":[100.0],"peer":"ucx_tag","raw_ns":[[60.0]],"repeats":[0],"size_bytes":16,"steady":[true],"values":[80.0]}
{"figure":"one_way","failure":"it broke","messages":7,"peer":"ucx_am","size_bytes":16}
{"figure":"one_way","messages":7,"ours":[300.0],"peer":"unix_stream_poll","raw_ns":[[240.0]],"repeats":[0],"size_bytes":16,"steady":[false],"values":[600.0]}"#;

pub(crate) fn report() -> Report {
    let all = catalogue(&Places::here().unwrap());
    crate::reading::read(RAW, &all).unwrap()
}

fn line_of<'a>(text: &'a str, label: &str) -> &'a str {
    text.lines()
        .find(|line| line.starts_with(&format!("| {label} |")))
        .unwrap_or_else(|| panic!("no {label} in {text}"))
}

#[test]
fn figures_are_of_one_state_or_say_so() {
    let text = markdown(&report(), &tables());
    assert!(text.contains("near each other"), "{text}");
    assert!(
        line_of(&text, "ZeroMQ ipc").contains(" 2.00 [2.00–2.00] ×20.0 |"),
        "{text}"
    );
    assert!(
        line_of(&text, "ZeroMQ ipc").ends_with("| near 60 |"),
        "{text}"
    );
    let socket = line_of(&text, "UNIX stream socket, polled");
    assert!(
        socket.contains(" 0.600~ far [0.600–0.600] ×2.00 |"),
        "{socket}"
    );
    assert!(socket.ends_with("| 240 |"), "{socket}");
}

#[test]
fn the_fastest_is_marked() {
    let text = markdown(&report(), &tables());
    assert!(
        line_of(&text, "UCX put").contains("**0.040 [0.040–0.040] ×0.40**"),
        "{text}"
    );
    // Ours has something faster than what it is compared with.
    assert!(
        line_of(&text, "UCX tag").contains(" *0.080 [0.080–0.080] ×0.80* "),
        "{text}"
    );
    assert!(
        line_of(&text, "Hamlyn, direct placement").contains(" 0.050 [0.050–0.050] ×0.50 "),
        "{text}"
    );
}

#[test]
fn failures_are_shown_with_their_reasons() {
    let text = markdown(&report(), &tables());
    assert!(line_of(&text, "nng ipc").contains("| failed |"), "{text}");
    assert!(text.contains("Failed: nng ipc: no package"), "{text}");
    assert!(
        line_of(&text, "UCX active message").contains("| failed |"),
        "{text}"
    );
    assert!(text.contains("16 B: it broke"), "{text}");
    let text = terminal(&report(), &tables());
    assert!(text.contains("failed: nng ipc: no package"), "{text}");
}

#[test]
fn the_machine_is_told() {
    let text = markdown(&report(), &tables());
    let told =
        "P, 2 virtual processors, 1 GiB (cores 0 and 1 used), Linux 6.18, load 0.5 beforehand";
    assert!(text.contains(told), "{text}");
    assert!(text.contains("zeromq 4"), "{text}");
    assert!(
        text.contains("UTC at commit abc123, in 11 minutes on P"),
        "{text}"
    );
}

#[test]
fn peers_that_sleep_have_tables_of_their_own() {
    let text = markdown(&report(), &tables());
    let (polling, sleeping) = text
        .split_once(heading(Waits::Sleeps))
        .expect("a heading of those that sleep");
    assert!(polling.contains("| UCX put |"), "{text}");
    assert!(!polling.contains("| ZeroMQ ipc |"), "{text}");
    assert!(sleeping.contains("| ZeroMQ ipc |"), "{text}");
    // What they are compared with is ours of their kind: 100 and 200 ns, of which one was in
    // another state.
    let ours = line_of(sleeping, "Hamlyn, raw interface, sleeping (after 16 looks)");
    assert!(ours.contains(" 0.100 [0.100–0.100] ×1.00 |"), "{ours}");
}
