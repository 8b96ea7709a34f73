use super::*;
use crate::reading::read as read_text;

/// A run without GASNet-EX, in which UCX was ahead of the first row but not of ours in C, and could
/// not do one figure.
const RAW_LINES: &str = r#"{"run":{"cores":[0,1],"date":"2026-11-30 09:00 UTC","kernel":"6.18","processor":"P","processors":2,"is_virtual":true,"memory_bytes":1073741824,"load":0.5,"quick":false,"rounds":2,"unavailable":{"gasnet":"no such release"},"commit":"abc123","took_s":61,"versions":{"hamlyn":"1","hamlyn_c":"1","ucx_am":"1.13","machine":"6.18"}}}
{"figure":"active","category":"short","size":4,"is_round_trip":true,"messages":7,"ours":[100.0,110.0],"peer":"hamlyn_am_c","raw_ns":[[60.0],[60.0]],"repeats":[0,0],"steady":[true,true],"values":[50.0,55.0]}
{"figure":"active","category":"short","size":4,"is_round_trip":true,"messages":7,"ours":[100.0,110.0],"peer":"ucx_am","raw_ns":[[60.0],[60.0]],"repeats":[0,0],"steady":[true,true],"values":[80.0,88.0]}
{"figure":"active","category":"long","size":65536,"is_round_trip":false,"messages":7,"ours":[1e10,2e10],"peer":"ucx_am","raw_ns":[[60.0],[60.0]],"repeats":[0,0],"steady":[true,true],"values":[2e10,4e10]}
{"figure":"active","category":"medium","size":64512,"is_round_trip":true,"peer":"ucx_am","unsupported":"too long"}
{"figure":"active","category":"medium","size":64512,"is_round_trip":true,"messages":7,"ours":[100.0],"peer":"ucx_am_cma","raw_ns":[[60.0]],"repeats":[0],"steady":[true],"values":[300.0]}"#;

fn all() -> Vec<Peer> {
    catalogue(&Places::here().unwrap())
}

fn report() -> Report {
    let all = all();
    let mut report = read_text(RAW_LINES, &all).unwrap();
    report.peers = of(&report.circumstances, &all);
    report
}

fn line_of<'a>(text: &'a str, title: &str, label: &str) -> &'a str {
    let section = text.split(&format!("| {title} |")).nth(1);
    section
        .unwrap_or_else(|| panic!("no {title} in {text}"))
        .lines()
        .find(|line| line.starts_with(&format!("| {label} |")))
        .unwrap_or_else(|| panic!("no {label} under {title} in {text}"))
}

#[test]
fn each_figure_has_an_order_of_its_own() {
    let figures = figures();
    let orders: std::collections::BTreeSet<String> =
        figures.iter().map(|figure| figure.order(9)).collect();
    assert_eq!(orders.len(), figures.len());
    for order in [
        "latency 0 9 1 short\n",
        "stream 16 9 1 short\n",
        "latency 1024 9 1 medium\n",
        "stream 64512 9 1 medium\n",
        "stream 1048576 9 1 long\n",
    ] {
        assert!(orders.contains(order), "{order:?} in {orders:?}");
    }
}

#[test]
fn figures_are_of_what_they_say() {
    let figure = |category, size, is_round_trip| {
        Figure::Active(Active {
            category,
            size,
            is_round_trip,
        })
    };
    let time = figure(Category::Short, 16, true);
    assert_eq!((time.value(10, 4_000.0), time.size_bytes()), (200.0, 64));
    assert!(time.is_time() && time.is_ahead(1.0, 2.0));
    let rate = figure(Category::Medium, 1024, false);
    assert_eq!(rate.value(10, 1_000.0), 1e7);
    assert_eq!(rate.show(1e7), "10.0");
    let bandwidth = figure(Category::Long, 65_536, false);
    assert_eq!(bandwidth.value(10, 655_360.0), 1e9);
    assert!(!bandwidth.is_time() && bandwidth.is_ahead(2.0, 1.0));
    assert_eq!(bandwidth.show(1e9), "1.00");
}

#[test]
fn all_are_compared_with_ours_in_rust() {
    for peer in all() {
        for figure in figures() {
            assert_eq!(peer.reference(figure), AM);
            assert_eq!(peer.measures(figure), !peer.is_machine(), "{}", peer.name);
        }
    }
    let libraries: Vec<_> = LIBRARIES.iter().map(|library| library.name).collect();
    assert!(all().iter().all(|peer| libraries.contains(&peer.library)));
}

#[test]
fn who_is_ahead_is_marked_and_who_is_missing_is_named() {
    let [(_, text), (_, json)] = made_of(&report()).unwrap();
    let ucx = line_of(&text, "Short, µs", "UCX");
    // Ours in C is faster.
    assert!(ucx.contains(" *0.084 [0.082–0.086] ×0.80* |"), "{ucx}");
    let ucx = line_of(&text, "Bulk, GB/s", "UCX");
    assert!(ucx.contains(" **30.0 [25.0–35.0] ×2.00** |"), "{ucx}");
    let medium = line_of(&text, "Medium, µs", "UCX, cma");
    assert!(medium.contains("| – | – | – | 0.300 [0.300–0.300] ×3.00 |"));
    assert!(text.contains("Failed: GASNet-EX smp: no such release"));
    assert!(line_of(&text, "Bulk, GB/s", "GASNet-EX smp").contains("failed"));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["reference"], AM);
    assert!(json.contains("too long"), "{json}");
    let short = short(&report());
    let ucx = line_of(&short, "Bulk, GB/s", "UCX");
    assert!(ucx.contains("| – | **30.0 ×2.00** | – |"), "{ucx}");
    assert!(short.contains("Failed: GASNet-EX smp: no such release"));
}

#[test]
fn what_is_kept_says_the_same_when_it_is_read() {
    let places = Places::here().unwrap();
    let directory = tempfile::tempdir().unwrap();
    assert!(read(directory.path(), &places).unwrap().is_none());
    let report = report();
    let kept = keep(&report, directory.path(), &places).unwrap();
    let file = |name| std::fs::read_to_string(directory.path().join(name)).unwrap();
    for (name, text) in made_of(&report).unwrap() {
        assert_eq!(file(name), text);
    }
    assert_eq!(json(&kept).unwrap(), json(&report).unwrap());
}
