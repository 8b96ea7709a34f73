//! Runs the programs of `tests/programs`: each shows one construct of the language, or one error
//! (Split-C 2.2).
//!
//! A valid program begins with a comment that says with how many processors it is run
//! (`procs: 1 2`), with what options it is compiled beside `-O0` and `-O2`, and what lines it
//! writes, in any order. In a program whose name begins with `wrong_`, each line with an error says
//! so in a comment, and no other line may have one.

mod running;

use running::{Program, in_parallel, run, splitcc};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn programs_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

fn sources(wrong: bool) -> Vec<PathBuf> {
    let mut list: Vec<_> = std::fs::read_dir(programs_directory())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sc"))
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with("wrong_")
                == wrong
        })
        .collect();
    list.sort();
    list
}

/// What the comment at the top says about `key`.
fn said<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    let lines = text
        .lines()
        .take_while(|line| line.starts_with("/*") || line.starts_with(" *"));
    lines
        .filter_map(|line| {
            line.strip_prefix(" * ")?
                .strip_prefix(key)?
                .strip_prefix(": ")
        })
        .collect()
}

fn sorted(lines: impl Iterator<Item = impl Into<String>>) -> Vec<String> {
    let mut lines: Vec<String> = lines.map(Into::into).collect();
    lines.sort();
    lines
}

fn check_valid(source: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(source).unwrap();
    let expected = sorted(said(&text, "output").into_iter());
    if expected.is_empty() {
        return Err("the comment at the top expects no output".into());
    }
    for optimisation in ["-O0", "-O2"] {
        let mut options = vec![optimisation, "-w"];
        options.extend(
            said(&text, "options")
                .iter()
                .flat_map(|line| line.split_whitespace()),
        );
        let program = Program::compile(&[source], &options)?;
        for procs in said(&text, "procs")
            .iter()
            .flat_map(|line| line.split_whitespace())
        {
            let outcome = run(&program, procs.parse().unwrap(), &[]);
            let lines = sorted(outcome.output.lines());
            if !outcome.success || lines != expected {
                return Err(format!("{optimisation}, {procs} processors: {outcome:?}"));
            }
        }
    }
    Ok(())
}

fn check_wrong(source: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(source).unwrap();
    let mut expected: BTreeMap<usize, &str> = BTreeMap::new();
    let mut at_end = None;
    for (number, line) in text.lines().enumerate() {
        if let Some((_, rest)) = line.split_once("/* error: ") {
            expected.insert(number + 1, rest.rsplit_once(" */").unwrap().0);
        }
        if let Some((_, rest)) = line.split_once("/* error-at-end: ") {
            at_end = Some(rest.rsplit_once(" */").unwrap().0);
        }
    }
    let output = splitcc()
        .arg("-emit-c")
        .arg(source)
        .args(["-o", "/dev/null"])
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let name = source.to_str().unwrap();
    let mut found: BTreeMap<usize, String> = BTreeMap::new();
    for line in messages.lines() {
        let Some(rest) = line
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix(':'))
        else {
            continue;
        };
        let mut parts = rest.splitn(3, ':');
        let number: usize = parts.next().unwrap().parse().unwrap();
        if let Some(message) = parts.nth(1).and_then(|rest| rest.strip_prefix(" error: ")) {
            found.entry(number).or_default().push_str(message);
        }
    }
    if output.status.code() != Some(1) {
        return Err(format!(
            "the exit status is {:?}, not 1: {messages}",
            output.status
        ));
    }
    if let Some(end) = at_end {
        return if messages.contains(end) {
            Ok(())
        } else {
            Err(messages)
        };
    }
    for (line, fragment) in &expected {
        if !found
            .get(line)
            .is_some_and(|message| message.contains(fragment))
        {
            return Err(format!(
                "line {line} has no error '{fragment}':\n{messages}"
            ));
        }
    }
    match found.keys().find(|line| !expected.contains_key(line)) {
        Some(line) => Err(format!(
            "line {line} has an error that was not expected:\n{messages}"
        )),
        None => Ok(()),
    }
}

#[test]
fn each_construct_does_what_it_should() {
    let sources = sources(false);
    assert!(
        sources.len() >= 110,
        "only {} programs were found",
        sources.len()
    );
    in_parallel(&sources, check_valid);
}

#[test]
fn each_error_is_reported_with_its_line() {
    let sources = sources(true);
    assert!(
        sources.len() >= 40,
        "only {} programs were found",
        sources.len()
    );
    in_parallel(&sources, check_wrong);
}
