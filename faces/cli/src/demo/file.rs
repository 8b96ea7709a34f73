//! A real file for the stream to carry, made from what is on the machine.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Where programs and libraries are.
const SOURCES: [&str; 4] = ["/usr/lib", "/usr/bin", "/lib", "/bin"];
/// Folders within folders that are looked into.
const DEPTH_MAX: usize = 6;

/// Removed when dropped.
pub(super) struct MadeFile {
    path: PathBuf,
}

impl MadeFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for MadeFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            eprintln!("hamlyn: {} is left behind: {error}", self.path.display());
        }
    }
}

/// A small file, readable by this user alone, removed when dropped.
pub(super) type Kept = MadeFile;

/// Keeps that in a file, for as long as it is needed.
pub(super) fn keep(what: &str, bytes: &[u8]) -> Result<Kept> {
    use std::os::unix::fs::OpenOptionsExt;
    let name = format!("hamlyn-demo-{what}-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("making {}", path.display()))?;
    let kept = MadeFile { path };
    file.write_all(bytes).context("writing a file")?;
    Ok(kept)
}

/// Makes a file of that size out of programs and libraries, over again if there are too few.
/// Everybody may read it.
pub(super) fn make(length_bytes: u64) -> Result<MadeFile> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = std::env::temp_dir().join(format!("hamlyn-demo-{}", std::process::id()));
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(&path)
        .with_context(|| format!("making {}", path.display()))?;
    let made = MadeFile { path };
    let mut left = length_bytes;
    while left > 0 {
        let before = left;
        for source in SOURCES {
            append(&mut file, Path::new(source), &mut left, DEPTH_MAX)?;
        }
        if left == before {
            bail!("no file could be read in {SOURCES:?}");
        }
    }
    Ok(made)
}

/// Appends all regular files below a folder, until enough was written. What
/// cannot be read is passed over.
fn append(file: &mut File, folder: &Path, left: &mut u64, depth: usize) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if *left == 0 {
            return Ok(());
        }
        let Ok(about) = path.symlink_metadata() else {
            continue;
        };
        if about.is_dir() && depth > 0 {
            append(file, &path, left, depth - 1)?;
        } else if about.is_file()
            && let Ok(source) = File::open(&path)
        {
            let mut bytes = Vec::new();
            if source.take(*left).read_to_end(&mut bytes).is_ok() {
                file.write_all(&bytes).context("writing the file")?;
                *left -= bytes.len() as u64;
            }
        }
    }
    Ok(())
}
