//! A copy of the tree in which some files have other texts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::collect;

/// A folder that is copied besides the packages of the workspace and the files at its root.
const DOCUMENTS: &str = "docs";

/// The folders of the packages of the workspace whose manifest is given.
fn members(manifest: &str) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Manifest {
        workspace: Workspace,
    }
    #[derive(Deserialize)]
    struct Workspace {
        members: Vec<String>,
    }
    let manifest: Manifest = toml::from_str(manifest)?;
    Ok(manifest.workspace.members)
}

/// Makes the copy at `to`, or brings it up to date. `more` names directories whose files the copy
/// has elsewhere as well; `files` are the texts that differ.
pub(crate) fn write(
    root: &Path,
    to: &Path,
    more: &[(&str, &str)],
    files: BTreeMap<String, String>,
) -> Result<()> {
    let copy = root.join(to);
    let mut texts: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    let mut add = |from: &Path, to: &Path| -> Result<()> {
        let mut files = Vec::new();
        collect(from, &mut |_| true, &mut files)?;
        for file in files {
            let bytes = std::fs::read(&file)?;
            texts.insert(to.join(file.strip_prefix(from)?), bytes);
        }
        Ok(())
    };
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    for part in members(&manifest).context("Cargo.toml")? {
        add(&root.join(&part), Path::new(&part))?;
    }
    add(&root.join(DOCUMENTS), Path::new(DOCUMENTS))?;
    for (from, to) in more {
        add(&root.join(from), Path::new(to))?;
    }
    for name in ["Cargo.toml", "Cargo.lock", "rustfmt.toml"] {
        texts.insert(PathBuf::from(name), std::fs::read(root.join(name))?);
    }
    for (name, text) in files {
        texts.insert(PathBuf::from(name), text.into_bytes());
    }
    let mut stale = Vec::new();
    if copy.exists() {
        collect(&copy, &mut |_| true, &mut stale)?;
    }
    for file in stale {
        if !texts.contains_key(file.strip_prefix(&copy)?) {
            std::fs::remove_file(file)?;
        }
    }
    // A file that is as before is left alone, so that cargo builds only what changed.
    for (name, bytes) in texts {
        let file = copy.join(name);
        if std::fs::read(&file).is_ok_and(|found| found == bytes) {
            continue;
        }
        std::fs::create_dir_all(file.parent().context("a file lies in a directory")?)?;
        std::fs::write(&file, bytes).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}
