use super::*;
use crate::table::tests::report;

const BEGIN: &str = "<!-- compare:begin -->";
const END: &str = "<!-- compare:end -->";

#[test]
fn each_library_has_its_best() {
    let text = section(&report());
    let line_of = |label: &str| {
        let start = format!("| {label} |");
        text.lines()
            .find(|line| line.starts_with(&start))
            .unwrap_or_else(|| panic!("no {label} in {text}"))
    };
    assert!(
        line_of("UCX").starts_with("| UCX | – | **0.040 [0.040–0.040] ×0.40** | – |"),
        "{text}"
    );
    assert!(line_of("nng").contains("| failed |"), "{text}");
    assert!(line_of("UNIX sockets, pipes").contains("far"), "{text}");
    assert!(
        line_of("Hamlyn, direct placement").contains("×0.50"),
        "{text}"
    );
    assert!(!text.contains("| MPICH |"), "it was not asked for: {text}");
    assert!(text.contains("2026-11-21"), "{text}");
}

#[test]
fn only_what_is_between_the_markers_changes() {
    let before = format!("above\n{BEGIN}\nold\n{END}\nbelow\n");
    let after = MARKERS.with_section(&before, "new\n").unwrap();
    assert_eq!(after, format!("above\n{BEGIN}\nnew\n{END}\nbelow\n"));
    assert_eq!(MARKERS.with_section(&after, "new\n").unwrap(), after);
    for text in [
        "neither".to_owned(),
        BEGIN.to_owned(),
        format!("{END}{BEGIN}"),
        format!("{BEGIN}{BEGIN}{END}"),
    ] {
        assert!(MARKERS.with_section(&text, "new\n").is_err(), "{text}");
    }
}

#[test]
fn a_file_that_says_otherwise_is_found_out() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{BEGIN}\n{END}\n")).unwrap();
    MARKERS.put(file.path(), "right\n").unwrap();
    MARKERS.check(file.path(), "right\n").unwrap();
    let error = format!("{:#}", MARKERS.check(file.path(), "other\n").unwrap_err());
    assert!(error.contains("make compare-show"), "{error}");
}
