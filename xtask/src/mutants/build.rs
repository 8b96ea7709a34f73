//! Builds the copy: tells which mutants the compiler refuses, and which test programs there are.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Where a mutant lies in a file of the copy.
pub(super) struct Place {
    pub(super) file: String,
    pub(super) range: Range<usize>,
    pub(super) mutant: usize,
}

/// A program of tests, and where it is to run.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) directory: PathBuf,
}

/// Programs that are not run: scenarios are run by themselves, and the machine and the simulator
/// have no mutants.
const LEFT_OUT: [&str; 3] = ["sim scenarios", "sim machine", "sim hamlyn_sim"];

/// What cargo says, and whether it was content.
fn cargo(copy: &Path, arguments: &[&str]) -> Result<(Vec<Value>, bool)> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(arguments)
        .args([
            "--locked",
            "--message-format=json",
            "--target-dir",
            "target",
        ])
        .current_dir(copy)
        .stderr(Stdio::null())
        .output()
        .context("running cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().map(serde_json::from_str);
    let messages = messages.collect::<Result<_, _>>();
    let messages = messages.context("reading what cargo says")?;
    Ok((messages, output.status.success()))
}

/// The mutants that do not compile.
pub(super) fn refused(copy: &Path, places: &[Place]) -> Result<BTreeSet<usize>> {
    let packages = ["hamlyn-engine", "hamlyn-ring", "hamlyn-link", "hamlyn"];
    let mut arguments = vec!["check"];
    for package in packages {
        arguments.extend(["-p", package]);
    }
    let mut refused = BTreeSet::new();
    let (messages, is_content) = cargo(copy, &arguments)?;
    for message in messages {
        if message["message"]["level"] != "error" {
            continue;
        }
        let spans = message["message"]["spans"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        if spans.is_empty() {
            continue;
        }
        let blamed = blamed(spans, places);
        if blamed.is_empty() {
            bail!(
                "the copy does not compile: {}",
                message["message"]["rendered"]
            );
        }
        refused.extend(blamed);
    }
    if !is_content && refused.is_empty() {
        bail!("cargo cannot check the copy: run it in {}", copy.display());
    }
    Ok(refused)
}

/// The mutants at which an error points; if it points at none, all of its files.
fn blamed(spans: &[Value], places: &[Place]) -> BTreeSet<usize> {
    let of = |is: &dyn Fn(&Place, &Value) -> bool| -> BTreeSet<usize> {
        let hit = |place: &&Place| spans.iter().any(|span| is(place, span));
        places
            .iter()
            .filter(hit)
            .map(|place| place.mutant)
            .collect()
    };
    let number = |span: &Value, name: &str| span[name].as_u64().unwrap_or(0) as usize;
    let exact = of(&|place, span| {
        span["file_name"] == place.file.as_str()
            && number(span, "byte_start") < place.range.end
            && number(span, "byte_end") > place.range.start
    });
    if exact.is_empty() {
        of(&|place, span| span["file_name"] == place.file.as_str())
    } else {
        exact
    }
}

/// Builds and lists the test programs.
pub(super) fn test_programs(copy: &Path) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    let mut arguments = vec!["test", "--no-run", "--tests"];
    for package in ["engine", "ring", "link", "host"] {
        arguments.extend(["-p", ["hamlyn-", package].concat().leak()]);
    }
    arguments.extend(["-p", "hamlyn", "-p", "hamlyn-sim"]);
    eprintln!("mutants: building the tests of the copy");
    let (messages, is_content) = cargo(copy, &arguments)?;
    for message in messages {
        if message["message"]["level"] == "error" {
            bail!(
                "a test does not compile: {}",
                message["message"]["rendered"]
            );
        }
        let Some(path) = message["executable"].as_str() else {
            continue;
        };
        if message["profile"]["test"] != true {
            continue;
        }
        let manifest = message["manifest_path"].as_str().context("a manifest")?;
        let directory = Path::new(manifest).parent().context("it lies somewhere")?;
        let package = directory.file_name().unwrap_or_default().to_string_lossy();
        let target = message["target"]["name"].as_str().unwrap_or_default();
        let name = format!("{package} {target}");
        if !LEFT_OUT.contains(&name.as_str()) {
            programs.push(Program {
                name,
                path: path.into(),
                directory: directory.to_owned(),
            });
        }
    }
    if programs.is_empty() || !is_content {
        bail!("cargo cannot build the tests: run it in {}", copy.display());
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_blames_the_mutants_it_points_at_or_all_of_the_file() {
        let place = |file: &str, range, mutant| Place {
            file: file.to_owned(),
            range,
            mutant,
        };
        let places = [
            place("a.rs", 10..20, 1),
            place("a.rs", 30..40, 2),
            place("b.rs", 10..20, 3),
        ];
        let at = |from: usize, to: usize| {
            let span = serde_json::json!({"file_name": "a.rs", "byte_start": from, "byte_end": to});
            blamed(&[span], &places).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(at(12, 13), [1]);
        assert_eq!(at(0, 50), [1, 2]);
        assert_eq!(at(20, 30), [1, 2]);
        assert_eq!(at(31, 32), [2]);
    }
}
