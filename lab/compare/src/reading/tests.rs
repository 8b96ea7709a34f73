use super::*;
use crate::catalogue::{Places, catalogue};
use crate::record::Cell;
use crate::statistics::State;

const RUN: &str = r#"{"run":{"cores":[0,1],"date":"2026-11-21 13:26 UTC","kernel":"6.18","processor":"P","quick":false,"rounds":2,"unavailable":{"nng":"no package"},"versions":{"hamlyn":"1","zeromq":"4"}}}"#;

fn all() -> Vec<Peer> {
    catalogue(&Places::here().unwrap())
}

fn of(lines: &[&str]) -> Result<Report> {
    read(&[&[RUN], lines].concat().join("\n"), &all())
}

fn error_of(line: &str) -> String {
    match of(&[line]) {
        Ok(_) => panic!("{line} was taken"),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn what_was_written_is_read() {
    let report = of(&[
        r#"{"peer":"zeromq_ipc","failure":"at the end"}"#,
        r#"{"figure":"one_way","messages":7,"ours":[100.0,110.0],"peer":"zeromq_ipc","raw_ns":[[60.0,61.0],[250.0,251.0]],"repeats":[0,2],"size_bytes":16,"steady":[true,false],"values":[200.5,330.0]}"#,
        r#"{"figure":"rate","peer":"zeromq_ipc","unsupported":"never"}"#,
        r#"{"figure":"bandwidth","fresh":true,"size_bytes":4096,"messages":3,"ours":[2e9],"values":[1e9],"steady":[true],"repeats":[0],"raw_ns":[[62.0]],"peer":"zeromq_ipc"}"#,
    ])
    .unwrap();
    assert_eq!(report.state, Some(State::Near));
    let file = tempfile::NamedTempFile::new().unwrap();
    report.write_raw(file.path()).unwrap();
    let again = read_file(file.path(), &all()).unwrap();
    let twice = tempfile::NamedTempFile::new().unwrap();
    again.write_raw(twice.path()).unwrap();
    let text = std::fs::read_to_string(file.path()).unwrap();
    assert_eq!(text, std::fs::read_to_string(twice.path()).unwrap());
    assert!(text.contains("200.5") && text.contains("at the end") && text.contains("never"));
    let peers: Vec<_> = again.peers.iter().map(|peer| peer.library).collect();
    assert!(
        peers
            .iter()
            .all(|library| ["hamlyn", "zeromq", "nng"].contains(library))
    );
    let zeromq = again
        .peers
        .iter()
        .find(|peer| peer.name == "zeromq_ipc")
        .unwrap();
    let Cell::Measured(summary) = again.cell(zeromq, Figure::OneWay { size_bytes: 16 }) else {
        panic!("no figure");
    };
    assert_eq!((summary.median, summary.rounds), (200.5, 1));
}

#[test]
fn what_is_damaged_names_its_line() {
    for line in [
        "nonsense",
        r#"{"figure":"rate","peer":"nobody","ours":[],"values":[]}"#,
        r#"{"figure":"speed","peer":"nng_ipc","ours":[],"values":[]}"#,
        r#"{"figure":"rate","peer":"nng_ipc","ours":[1.0],"values":[]}"#,
        r#"{"figure":"rate","peer":"nng_ipc","ours":[1.0],"values":[1.0],"steady":[true]}"#,
        r#"{"peer":"nng_ipc"}"#,
    ] {
        let error = error_of(line);
        assert!(error.contains("line 2"), "{line}: {error}");
    }
    let twice = r#"{"figure":"rate","peer":"nng_ipc","ours":[],"values":[]}"#;
    assert!(of(&[twice, twice]).is_err());
    assert!(read("", &all()).is_err());
}
