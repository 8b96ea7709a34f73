//! The engine is a pure state machine: nothing in it can reach an operating
//! system. Where it cannot be compiled for a target without one, this stands in for it.

use crate::source::{code_of, line_of, words};

/// Words that no source of the engine may have, and why.
const FORBIDDEN: [(&str, &str); 14] = [
    ("std", "the engine is no_std"),
    ("unsafe", "the engine has no unsafe code"),
    ("asm", "the engine has no unsafe code"),
    ("Instant", "the engine reads no clock; it is told the time"),
    (
        "SystemTime",
        "the engine reads no clock; it is told the time",
    ),
    ("thread", "the engine starts no thread"),
    ("fs", "the engine does no I/O"),
    ("net", "the engine does no I/O"),
    ("io", "the engine does no I/O"),
    ("libc", "the engine makes no system call"),
    ("HashMap", "iteration over hashes is not deterministic"),
    ("HashSet", "iteration over hashes is not deterministic"),
    ("include", "what is included is not checked here"),
    ("path", "a module in another place is not checked here"),
];

/// Crates that the engine may depend on; none of them needs an operating system.
const DEPENDENCIES: [&str; 1] = ["thiserror"];

/// What is wrong with the engine. `sources` are all files of its `src`, with their names.
pub(crate) fn check(manifest: &str, sources: &[(String, String)]) -> Vec<String> {
    let mut problems = Vec::new();
    match sources
        .iter()
        .find(|(name, _)| name.ends_with("src/lib.rs"))
    {
        None => problems.push("the engine has no src/lib.rs".to_owned()),
        Some((name, text)) => {
            for line in ["#![no_std]", "#![forbid(unsafe_code)]"] {
                if !text.lines().any(|found| found.trim() == line) {
                    problems.push(format!("{name}: {line} is missing"));
                }
            }
        }
    }
    for (name, text) in sources {
        // Tests in files of their own are compiled for tests only.
        if name.ends_with("tests.rs") {
            continue;
        }
        let code = code_of(text);
        let code = &code[..code.find("#[cfg(test)]").unwrap_or(code.len())];
        for (word, why) in FORBIDDEN {
            for at in words(code, word) {
                if word == "path" && !is_attribute(code, at) {
                    continue;
                }
                problems.push(format!("{name}:{}: `{word}`: {why}", line_of(code, at)));
            }
        }
    }
    for dependency in dependencies(manifest) {
        if !DEPENDENCIES.contains(&dependency) {
            problems.push(format!(
                "the engine depends on {dependency}, which is not known to do without an operating system"
            ));
        }
    }
    problems
}

/// Whether the word there is the name of an attribute: a transport has paths, too.
fn is_attribute(code: &str, at: usize) -> bool {
    let before = code[..at].trim_end();
    let after = code[at + "path".len()..].trim_start();
    before.ends_with(['[', '(', ',']) && after.starts_with('=') && !after.starts_with("==")
}

/// Names in the `[dependencies]` of a manifest, target-specific ones and tables of their own
/// included.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section == "dependencies" || section.ends_with(".dependencies");
            if let Some((table, name)) = section.rsplit_once('.')
                && (table == "dependencies" || table.ends_with(".dependencies"))
            {
                names.push(name);
            }
        } else if inside
            && !line.starts_with('#')
            && let Some((name, _)) = line.split_once(['=', '.'])
        {
            names.push(name.trim());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"engine\"\n[dependencies]\nthiserror = { workspace = true }\n\
                            [dev-dependencies]\nloom = \"1\"\n";
    const ROOT: &str = "//! std:: in words\n#![no_std]\n#![forbid(unsafe_code)]\nmod a;\n";

    fn engine(a: &str) -> Vec<(String, String)> {
        vec![
            ("crates/engine/src/a.rs".to_owned(), a.to_owned()),
            ("crates/engine/src/lib.rs".to_owned(), ROOT.to_owned()),
        ]
    }

    #[test]
    fn a_pure_engine_passes() {
        let a = "use core::fmt; // not std::fmt\nconst TEXT: &str = \"std::net\";\n\
                 fn f(path: u8) { let path = path; g(path, path == 1) }\n\
                 #[cfg(test)]\nmod tests { use std::fs; }";
        assert_eq!(check(MANIFEST, &engine(a)), Vec::<String>::new());
    }

    #[test]
    fn whatever_reaches_the_system_is_named_with_its_line() {
        for (code, word) in [
            ("\nuse std::fmt;", "std"),
            ("\nextern crate std;", "std"),
            ("\nlet now = Instant::now();", "Instant"),
            ("\nlet now = SystemTime::now();", "SystemTime"),
            ("\nthread::spawn(f);", "thread"),
            ("\nfs::read(p);", "fs"),
            ("\nnet::listen(p);", "net"),
            ("\nfor x in HashMap::new() {}", "HashMap"),
            ("\nunsafe { f() }", "unsafe"),
            ("\n#[path = \"x\"] mod y;", "path"),
            ("\n#[cfg_attr(all(), path = \"x\")] mod y;", "path"),
        ] {
            let problems = check(MANIFEST, &engine(code));
            assert_eq!(problems.len(), 1, "{code}: {problems:?}");
            assert!(
                problems[0].starts_with(&format!("crates/engine/src/a.rs:2: `{word}`")),
                "{problems:?}"
            );
        }
    }

    #[test]
    fn missing_promises_are_named() {
        for line in ["#![no_std]", "#![forbid(unsafe_code)]"] {
            let mut sources = engine("");
            sources[1].1 = ROOT.replace(line, &format!("// {line}"));
            let problems = check(MANIFEST, &sources);
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems[0].contains(line), "{problems:?}");
        }
        assert_eq!(check(MANIFEST, &[]).len(), 1);
    }

    #[test]
    fn foreign_dependencies_are_named() {
        for extra in [
            "[dependencies]\nrustix = \"1\"",
            "[dependencies.rustix]\nversion = \"1\"",
            "[target.'cfg(unix)'.dependencies]\nrustix.workspace = true",
        ] {
            let problems = check(&format!("{MANIFEST}{extra}\n"), &engine(""));
            assert_eq!(problems.len(), 1, "{extra}: {problems:?}");
            assert!(problems[0].contains("rustix"), "{problems:?}");
        }
    }
}
