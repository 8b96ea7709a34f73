//! What is to be started where, and what each process is told.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use hamlyn::host::network::ClusterSecret;
use hamlyn::host::network::hosts::HostName;
use serde::{Deserialize, Serialize};

use super::hosts::JobHosts;
use super::options::{Arguments, PlacementName, StrategyName};

/// A job that is about to be started.
pub(super) struct Plan {
    pub(super) parts: Vec<Part>,
    pub(super) label: bool,
    /// What reaches another host: a program and its first arguments.
    pub(super) remote_shell: Vec<String>,
}

/// A process.
pub(super) struct Part {
    pub(super) proc: u32,
    /// Where, if not here.
    pub(super) host: Option<String>,
    pub(super) order: Order,
}

/// What a process is told on its standard input.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The program and its arguments. Nothing: the process computes until it is killed.
    pub(super) command: Vec<String>,
    pub(super) variables: BTreeMap<String, String>,
    /// Whether it stays beside the program.
    pub(super) is_remote: bool,
    pub(super) directory: Option<String>,
    /// The process that gives this order, which its receiver does not outlive.
    pub(super) launcher: u32,
    /// Files that the program needs, by the variable that names each; they are private and lie in
    /// memory.
    pub(super) files: BTreeMap<String, String>,
}

/// Variables that say how this program reaches others, which the processes are given.
const NETWORK: [&str; 4] = [
    "HAMLYN_SECRET",
    "HAMLYN_KEY",
    "HAMLYN_KNOWN",
    "HAMLYN_INSECURE",
];
const SECRET: &str = "HAMLYN_SECRET";

impl Order {
    /// That of a process of null.
    pub(super) fn null() -> Self {
        Self {
            launcher: std::process::id(),
            ..Self::default()
        }
    }
}

impl Plan {
    pub(super) fn new(arguments: &Arguments) -> Result<Self> {
        let procs = arguments.procs;
        let mut variables = BTreeMap::new();
        let mut set = |name: &str, value: String| {
            variables.insert(name.to_owned(), value);
        };
        set("HAMLYN_JOB", job_name()?);
        set("HAMLYN_PROCS", procs.to_string());
        let strategy = match arguments.strategy {
            StrategyName::Proc => "proc",
            StrategyName::Np => "np",
            StrategyName::Inject => "inject",
            StrategyName::Receive => "receive",
        };
        set("HAMLYN_STRATEGY", strategy.to_owned());
        let placement = match arguments.placement {
            PlacementName::Direct => "direct",
            PlacementName::Copied => "copied",
        };
        set("HAMLYN_PLACEMENT", placement.to_owned());
        set("HAMLYN_MEMORY", arguments.memory.to_string());
        if let Some(seconds) = arguments.barrier_timeout {
            set("HAMLYN_BARRIER_TIMEOUT", seconds.to_string());
        }
        let mut hosts = vec![None; procs as usize];
        let mut files = BTreeMap::new();
        if let Some(path) = &arguments.hosts {
            let table = JobHosts::read(path, procs)?;
            let counts = table.hosts.iter();
            let counts: Vec<_> = counts
                .map(|host| format!("{}:{}", host.name, host.procs))
                .collect();
            set("HAMLYN_JOB_HOSTS", counts.join(","));
            let names = table.hosts.iter();
            let names = names
                .flat_map(|host| std::iter::repeat_n(Some(host.name.clone()), host.procs as usize));
            hosts = names.collect();
            files.insert("HAMLYN_HOSTS".to_owned(), table.table);
            if NETWORK.iter().all(|name| std::env::var_os(name).is_none()) {
                // The hosts of this job trust each other, and nobody else.
                let secret = ClusterSecret::generate()?.to_text();
                files.insert(SECRET.to_owned(), format!("{}\n", *secret));
            }
        }
        let here = own_name();
        let directory = std::env::current_dir().context("finding the current directory")?;
        let directory = directory.to_str().map(str::to_owned);
        let part = |(proc, host): (u32, Option<String>)| {
            let mut variables = variables.clone();
            variables.insert("HAMLYN_RANK".to_owned(), proc.to_string());
            let mut host = host;
            if let Some(name) = &host {
                variables.insert("HAMLYN_HOST".to_owned(), name.clone());
                if here.as_ref() == Some(name) {
                    host = None;
                }
            }
            if host.is_some() {
                // Another host has an environment of its own.
                let ours = std::env::vars().filter(|(name, _)| {
                    (name.starts_with("HAMLYN_") && name != "HAMLYN_REMOTE_SHELL")
                        || name == "LD_LIBRARY_PATH"
                });
                for (name, value) in ours {
                    if !files.contains_key(&name) {
                        variables.entry(name).or_insert(value);
                    }
                }
            }
            Part {
                proc,
                order: Order {
                    command: arguments.command.clone(),
                    variables,
                    is_remote: host.is_some(),
                    directory: directory.clone(),
                    launcher: std::process::id(),
                    files: files.clone(),
                },
                host,
            }
        };
        let parts: Vec<Part> = (0..procs).zip(hosts).map(part).collect();
        if let (
            true,
            Some(Part {
                proc,
                host: Some(host),
                ..
            }),
        ) = (
            arguments.gang.is_some(),
            parts.iter().find(|part| part.host.is_some()),
        ) {
            bail!(
                "--gang stops processes of this host, and process {proc} is to run on {host}: \
                 leave out --gang or --hosts"
            );
        }
        let shell = std::env::var("HAMLYN_REMOTE_SHELL")
            .unwrap_or_else(|_| "ssh -o BatchMode=yes".to_owned());
        Ok(Self {
            parts,
            label: arguments.label,
            remote_shell: shell.split_whitespace().map(str::to_owned).collect(),
        })
    }
}

/// A name that no other job has.
fn job_name() -> Result<String> {
    let mut random = [0; 8];
    let read = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    read.context("asking the system for random bytes")?;
    Ok(format!("run-{:016x}", u64::from_le_bytes(random)))
}

/// What the hosts of a table call this one.
fn own_name() -> Option<String> {
    let name = match std::env::var("HAMLYN_HOST") {
        Ok(name) => HostName::new(&name),
        Err(_) => HostName::own(),
    };
    name.ok().map(|name| name.to_string())
}
