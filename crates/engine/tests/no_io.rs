//! The engine names no I/O: its first lines say so and the compiler holds it to them.

use std::fs;
use std::path::Path;

fn sources() -> Vec<(String, String)> {
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut sources = Vec::new();
    while let Some(directory) = directories.pop() {
        for file in fs::read_dir(directory).expect("the crate has sources") {
            let path = file.expect("readable").path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let text = fs::read_to_string(&path).expect("text");
                sources.push((path.display().to_string(), text));
            }
        }
    }
    assert!(
        sources
            .iter()
            .any(|(path, _)| path.ends_with("transport/frame.rs"))
    );
    sources
}

#[test]
fn the_engine_is_no_std_and_forbids_unsafe() {
    let sources = sources();
    let (_, root) = sources
        .iter()
        .find(|(path, _)| path.ends_with("lib.rs"))
        .expect("a root");
    let lines: Vec<_> = root.lines().map(str::trim).collect();
    assert!(lines.contains(&"#![no_std]"));
    assert!(lines.contains(&"#![forbid(unsafe_code)]"));
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.starts_with("extern crate"))
            .count(),
        1
    );
    assert!(lines.contains(&"extern crate alloc;"));
}

#[test]
fn no_source_names_std_or_iterates_over_hashes() {
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or(line);
            for word in [
                "std::",
                "extern crate std",
                "HashMap",
                "HashSet",
                "Instant",
                "SystemTime",
            ] {
                assert!(!code.contains(word), "{path}:{}: {word}", number + 1);
            }
        }
    }
}
