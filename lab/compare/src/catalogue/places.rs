//! Where programs, results and documents are.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// Where programs are found.
pub(crate) struct Places {
    /// The directory `compare` of a checkout.
    pub(crate) compare: PathBuf,
    /// Where Cargo puts this workspace's programs.
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

    /// Where results of whole runs are kept.
    pub(crate) fn results(&self) -> PathBuf {
        self.compare.join("results")
    }

    /// The file that shows the short table.
    pub(crate) fn comparison(&self) -> PathBuf {
        self.compare.join("../../docs/comparison.md")
    }

    /// Where programs are put that Cargo does not build.
    pub(crate) fn built(&self) -> PathBuf {
        self.binaries.join("peers")
    }

    /// Packages of Debian's next release, unpacked (`install`).
    pub(crate) fn later_debian(&self) -> PathBuf {
        self.built().join("debian")
    }
}
