//! The places of programs, results and documents.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// The directories in which programs are found.
pub(crate) struct Places {
    /// The directory `compare` of a checkout.
    pub(crate) compare: PathBuf,
    /// The directory into which Cargo puts this workspace's programs.
    pub(crate) binaries: PathBuf,
}

impl Places {
    /// Around this program, and in the checkout that it was built from.
    pub(crate) fn here() -> Result<Self> {
        Ok(Self {
            compare: PathBuf::from(env!("CARGO_MANIFEST_DIR")),
            binaries: std::env::current_exe()
                .context("finding this program")?
                .parent()
                .context("this program lies nowhere")?
                .to_owned(),
        })
    }

    /// The directory of results of whole runs.
    pub(crate) fn results(&self) -> PathBuf {
        self.compare.join("results")
    }

    /// The file that shows the short table.
    pub(crate) fn comparison(&self) -> PathBuf {
        self.compare.join("../../docs/comparison.md")
    }

    /// The directory of programs that Cargo does not build.
    pub(crate) fn built(&self) -> PathBuf {
        self.binaries.join("peers")
    }

    /// Packages of Debian's next release, unpacked (`install`).
    pub(crate) fn later_debian(&self) -> PathBuf {
        self.built().join("debian")
    }
}
