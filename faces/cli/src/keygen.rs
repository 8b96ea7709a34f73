//! `hamlyn keygen`: makes the key of a host, or the secret of a cluster.
//!
//! A file is made anew, readable by its owner alone; one that exists is never overwritten, since a
//! secret that is lost takes all hosts off the network that still have it. Nothing secret is
//! printed.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use hamlyn::host::network::hosts::HostName;
use hamlyn::host::network::{ClusterSecret, HostKey};

/// Read and written by its owner, and by nobody else.
const MODE: u32 = 0o600;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// The key of a host: keep the file there (HAMLYN_KEY, --key), and put the line that is printed
    /// into the list of hosts of all (HAMLYN_KNOWN, --known). Each host speaks for itself only.
    Host {
        /// The file to be made.
        file: PathBuf,
        /// What the others call this host; by default what HAMLYN_HOST says, or else the system.
        #[arg(long)]
        name: Option<String>,
    },
    /// The secret of a cluster: copy the file to all its hosts, and name it there (HAMLYN_SECRET,
    /// --secret). Simpler than keys of hosts, for hosts that trust each other: each can pretend to
    /// be any other.
    Secret {
        /// The file to be made.
        file: PathBuf,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.what {
        What::Secret { file } => {
            make(file, &ClusterSecret::generate()?.to_text())?;
            eprintln!(
                "{}: the secret of a cluster; each host that holds it can pretend to be any other (otherwise: hamlyn keygen host)",
                file.display()
            );
        }
        What::Host { file, name } => {
            // Before anything is written.
            let named = name.clone().or_else(|| std::env::var("HAMLYN_HOST").ok());
            let name = match named {
                Some(name) => HostName::new(&name)?,
                None => HostName::own()?,
            };
            let key = HostKey::generate()?;
            make(file, &key.to_text())?;
            println!("{name} {}", key.public());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the file; if it cannot be filled, there is none.
fn make(path: &Path, text: &str) -> Result<()> {
    ensure!(
        path.symlink_metadata().is_err(),
        "{}: it exists, and is not overwritten",
        path.display()
    );
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(path);
    let mut file = made.with_context(|| format!("{}: it cannot be made", path.display()))?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.write_all(b"\n"))
        .and_then(|()| file.sync_all());
    if let Err(error) = written {
        // What is half written is of no use to anybody.
        let _ = std::fs::remove_file(path);
        return Err(error).with_context(|| format!("{}: it cannot be written", path.display()));
    }
    Ok(())
}
