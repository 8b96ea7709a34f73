//! The programs of `docs/c.md` compile, and do what it says.

mod support;

use std::path::PathBuf;

use support::{compile, passed_with, start};

const DOCUMENT: &str = include_str!("../../../docs/c.md");

/// A program of the document, by the name in its first line.
fn program(name: &str, compiler: &[&str]) -> PathBuf {
    let begin = (["/* ", "// "].iter())
        .find_map(|mark| DOCUMENT.find(&format!("{mark}{name}")))
        .unwrap();
    let begin = DOCUMENT[..begin].rfind("```").unwrap();
    let text = &DOCUMENT[begin..];
    let text = &text[text.find('\n').unwrap() + 1..];
    let text = &text[..text.find("```").unwrap()];
    let source = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&source, text).unwrap();
    compile(&source, &format!("document-{name}"), compiler)
}

#[test]
fn the_two_programs_talk() {
    let receiver = program("receiver.c", &["cc", "-std=c99"]);
    let sender = program("sender.c", &["cc", "-std=c99"]);
    let namespace = format!("document-{}", std::process::id());
    let receives = start(&receiver, &namespace, &[]);
    passed_with(start(&sender, &namespace, &[]), "");
    let user = std::fs::metadata("/proc/self").map(|it| std::os::unix::fs::MetadataExt::uid(&it));
    let user = user.unwrap();
    passed_with(
        receives,
        &format!("user {user} says: hello\nuser {user} says: \n"),
    );
}

#[test]
fn the_service_adds() {
    let sums = program("sums.cpp", &["c++", "-std=c++17"]);
    let namespace = format!("document-sums-{}", std::process::id());
    let serves = start(&sums, &namespace, &["serve"]);
    passed_with(start(&sums, &namespace, &[]), "1.5\n3\n4.5\n");
    passed_with(serves, "");
}
