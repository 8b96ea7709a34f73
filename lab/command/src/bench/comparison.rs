//! `hamlyn-lab bench --peers`: the comparison with other ways to exchange messages. It lives in a
//! workspace of its own, `compare`, since it brings the peers with it; so it needs a checkout.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

/// Where the comparison is, in a checkout.
const MANIFEST: &str = "lab/compare/Cargo.toml";

/// Builds the comparison and runs it in place of this program's own measurements.
pub(crate) fn run(json: bool, quick: bool) -> Result<ExitCode> {
    let manifest = in_checkout(MANIFEST)
        .context(
            "the comparison with peers needs a checkout of Hamlyn: run this in one, or `make compare` there",
        )?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["run", "--release", "--quiet"])
        .arg("--manifest-path")
        .arg(&manifest)
        .args(["--package", "hamlyn-compare", "--"]);
    command.args(json.then_some("--json"));
    command.args(quick.then_some("--quick"));
    let status = command
        .status()
        .context("starting cargo, which builds the comparison")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Where a checkout may be found: around the working directory, or around this program.
fn starting_points() -> Vec<PathBuf> {
    [std::env::current_dir(), std::env::current_exe()]
        .into_iter()
        .flatten()
        .collect()
}

/// A file of the nearest checkout.
pub(super) fn in_checkout(file: &str) -> Option<PathBuf> {
    starting_points()
        .iter()
        .find_map(|start| file_above(start, file))
}

/// A file in the nearest directory above that has it.
fn file_above(start: &Path, file: &str) -> Option<PathBuf> {
    start
        .ancestors()
        .map(|directory| directory.join(file))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_checkout_it_was_built_from() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = file_above(&here.join("src/bench"), MANIFEST).expect("a checkout");
        assert!(found.ends_with(MANIFEST), "{found:?}");
        assert_eq!(file_above(Path::new("/"), MANIFEST), None);
    }
}
