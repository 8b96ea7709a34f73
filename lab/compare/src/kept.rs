//! Reports that are kept as JSON, beside the table that is made of them.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) trait Kept: Serialize + DeserializeOwned {
    /// The name of both files, but for its ending.
    const NAME: &'static str;

    /// The table, and what it needs to be understood.
    fn markdown(&self) -> String;
}

fn raw_file<R: Kept>() -> String {
    format!("{}.json", R::NAME)
}

fn table_file<R: Kept>() -> String {
    format!("{}.md", R::NAME)
}

/// Writes what was measured, and the table that is made of it.
pub(crate) fn write<R: Kept>(report: &R, output: &Path) -> Result<()> {
    std::fs::create_dir_all(output).with_context(|| format!("making {}", output.display()))?;
    let text = serde_json::to_string_pretty(report)? + "\n";
    std::fs::write(output.join(raw_file::<R>()), text).context("writing what was measured")?;
    std::fs::write(output.join(table_file::<R>()), report.markdown()).context("writing the table")
}

/// A report that a run has left in a directory, and its table as it is there.
pub(crate) struct Found<R> {
    report: R,
    table: String,
}

/// Reads what a run has left in that directory, if there was one.
pub(crate) fn read<R: Kept>(output: &Path) -> Result<Option<Found<R>>> {
    let raw = output.join(raw_file::<R>());
    if !raw.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&raw).context("reading what was measured")?;
    let table =
        std::fs::read_to_string(output.join(table_file::<R>())).context("reading the table")?;
    let report = serde_json::from_str(&text)?;
    Ok(Some(Found { report, table }))
}

impl<R: Kept> Found<R> {
    /// Writes it anew.
    pub(crate) fn show(&self, output: &Path) -> Result<()> {
        write(&self.report, output)
    }

    /// Fails if the table does not say what was measured.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(
            self.table == self.report.markdown(),
            "{} does not say what {} beside it says: run `make compare-show`",
            table_file::<R>(),
            raw_file::<R>()
        );
        Ok(())
    }
}
