//! One-sided operations beside each other: reads, writes, streams of writes, additions of several
//! processes to one word, and programs that are made of them, on one host.
//!
//! Each program measures all of its figures in one go and prints them (`peers/harness/one_sided.h`
//! says how). The programs take turns, round by round, and all of a round are compared with ours of
//! the same round. Processes are not bound: with two there is a core for each.

mod report;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::catalogue::{AS_ROOT, Build, HAMLYN, Library, MACHINE, Places};
use crate::interruption;
use crate::pin::Cores;
use crate::prepare;
use crate::publication;
use crate::record::Circumstances;
use crate::run::Effort;
pub(crate) use report::Report;

/// With which every other one is compared.
pub(crate) const REFERENCE: &str = "hamlyn_exported";
/// How many processes add to one word; with two, all else is measured, too.
const PROCESSES: [u32; 3] = [2, 4, 8];
/// A program that takes longer has hung.
const TIME_MAX: Duration = Duration::from_secs(120);

const LIBRARIES: &[Library] = &[
    Library {
        name: MACHINE,
        label: "the machine itself",
        build: Build::C {
            compiler: "cc",
            source: "contended",
            program: "contended",
            libraries: &["-pthread"],
        },
        version: &["uname", "-r"],
    },
    Library {
        name: HAMLYN,
        label: "Hamlyn",
        build: Build::Cargo {
            packages: &["compare-one-sided"],
        },
        version: &["git", "describe", "--always", "--dirty"],
    },
    Library {
        name: "splitc",
        label: "Split-C of Hamlyn",
        build: Build::Face {
            package: "hamlyn-splitc-c",
            source: "splitc",
            headers: "faces/splitc/include",
            libraries: &["-no-pie", "-lsplitc"],
        },
        version: &["git", "describe", "--always", "--dirty"],
    },
    Library {
        name: "mpi_one_sided",
        label: "Open MPI, one-sided",
        build: Build::C {
            compiler: "mpicc.openmpi",
            source: "mpi_one_sided",
            program: "mpi_one_sided",
            libraries: &[],
        },
        version: &["dpkg-query", "-W", "-f", "${Version}", "openmpi-bin"],
    },
    Library {
        name: "shmem",
        label: "OpenSHMEM of Open MPI",
        build: Build::C {
            compiler: "oshcc",
            source: "shmem",
            program: "shmem",
            libraries: &[],
        },
        version: &["dpkg-query", "-W", "-f", "${Version}", "openmpi-bin"],
    },
];

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    Read,
    Write,
    Stream,
    Add,
    Updates,
    Em3d,
    Sort,
}

impl Operation {
    /// Whether all processes take part in it.
    fn is_of_all(self) -> bool {
        matches!(self, Self::Add | Self::Updates | Self::Em3d | Self::Sort)
    }
}

/// A figure: an operation, its bytes, and among how many processes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) operation: Operation,
    pub(crate) size_bytes: usize,
    pub(crate) processes: u32,
}

/// Who starts the processes.
enum Launcher {
    /// This program, which describes a job in their environment.
    Own,
    /// A program, to which the number of processes and the program are given.
    Other(Vec<&'static str>),
}

/// A program with its settings.
struct Peer {
    name: &'static str,
    label: &'static str,
    library: &'static str,
    launcher: Launcher,
    command: Vec<OsString>,
    environment: Vec<(&'static str, &'static str)>,
}

fn catalogue(places: &Places) -> Vec<Peer> {
    let built = |name: &str| places.built().join(name).into_os_string();
    let hamlyn = |name, label, variant: &str| Peer {
        name,
        label,
        library: HAMLYN,
        launcher: Launcher::Own,
        command: vec![
            places.binaries.join("compare-one-sided").into_os_string(),
            variant.into(),
        ],
        environment: Vec::new(),
    };
    let splitc = |name, label, placement| Peer {
        name,
        label,
        library: "splitc",
        launcher: Launcher::Own,
        command: vec![built("splitc")],
        environment: vec![("HAMLYN_PLACEMENT", placement)],
    };
    let mpi = |name, label, component| {
        Peer {
        name,
        label,
        library: "mpi_one_sided",
        launcher: Launcher::Other(
            [
                "mpirun.openmpi --oversubscribe --bind-to none --mca pml ob1 --mca btl self,vader --mca osc",
                component,
                "-n",
            ]
            .iter()
            .flat_map(|words| words.split(' '))
            .collect(),
        ),
        command: vec![built("mpi_one_sided")],
        environment: AS_ROOT.to_vec(),
    }
    };
    vec![
        hamlyn(REFERENCE, "Hamlyn, exported memory", "exported"),
        hamlyn("hamlyn_packets", "Hamlyn, by packets", "packets"),
        splitc("splitc_direct", "Split-C, direct placement", "direct"),
        splitc("splitc_copied", "Split-C, copied placement", "copied"),
        mpi("mpi_rdma", "Open MPI, osc rdma", "rdma"),
        mpi("mpi_sm", "Open MPI, osc sm", "sm"),
        Peer {
            name: "shmem",
            label: "OpenSHMEM (Open MPI, UCX)",
            library: "shmem",
            launcher: Launcher::Other(vec!["oshrun", "--oversubscribe", "--bind-to", "none", "-n"]),
            command: vec![built("shmem")],
            environment: [AS_ROOT, &[("UCX_TLS", "posix,self")]].concat(),
        },
        Peer {
            name: "machine",
            label: "the machine itself: `lock xadd` of threads",
            library: MACHINE,
            launcher: Launcher::Other(vec![]),
            command: vec![built("contended")],
            environment: Vec::new(),
        },
    ]
}

/// One figure of one peer, round by round: nanoseconds for an operation.
pub(crate) type Values = BTreeMap<(String, Figure), Vec<f64>>;

/// Measures all that are chosen.
pub(crate) fn compare(
    only: &[String],
    places: &Places,
    cores: Cores,
    rounds: usize,
    lasts: Duration,
    install: bool,
    quick: bool,
) -> Result<Report> {
    let effort = Effort {
        rounds,
        lasts,
        time_max: Duration::MAX,
    };
    let mut circumstances = Circumstances::now(cores, effort, quick)?;
    circumstances.commit = publication::commit(&places.compare);
    prepare::all(LIBRARIES, only, places, install, &mut circumstances)?;
    let peers = catalogue(places);
    let mut values = Values::new();
    let mut failures: BTreeMap<String, String> = BTreeMap::new();
    let begun = Instant::now();
    for round in 0..rounds {
        for processes in PROCESSES {
            for peer in &peers {
                interruption::check()?;
                let key = format!("{} with {processes} processes", peer.label);
                if !circumstances.versions.contains_key(peer.library) || failures.contains_key(&key)
                {
                    continue;
                }
                eprintln!("== round {} of {rounds}: {key}", round + 1);
                match peer.measure(processes, lasts) {
                    Ok(figures) => {
                        for (figure, value) in figures {
                            let entry = values.entry((peer.name.to_owned(), figure));
                            entry.or_default().push(value);
                        }
                    }
                    Err(error) => {
                        interruption::check()?;
                        eprintln!("{key}: {error:#}");
                        failures.insert(key, format!("{error:#}"));
                    }
                }
            }
        }
    }
    circumstances.took_s = Some(begun.elapsed().as_secs());
    let labels = peers
        .iter()
        .map(|peer| (peer.name.to_owned(), peer.label.to_owned()));
    Ok(Report::new(
        circumstances,
        labels.collect(),
        values,
        failures,
    ))
}

impl Peer {
    fn measure(&self, processes: u32, lasts: Duration) -> Result<Vec<(Figure, f64)>> {
        let milliseconds = (lasts.as_secs_f64() * 1e3).to_string();
        let mut children = Vec::new();
        let mut start = |command: &mut Command| -> Result<()> {
            command.envs(self.environment.iter().copied());
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let child = command
                .spawn()
                .with_context(|| format!("starting {command:?}"))?;
            children.push(child);
            Ok(())
        };
        let (program, rest) = self.command.split_first().context("no program")?;
        match &self.launcher {
            Launcher::Own => {
                let job = format!("compare-{}-{}", std::process::id(), self.name);
                for rank in 0..processes {
                    let mut command = Command::new(program);
                    command.args(rest).arg(&milliseconds);
                    command
                        .env("HAMLYN_JOB", &job)
                        .env("HAMLYN_RANK", rank.to_string());
                    command.env("HAMLYN_PROCS", processes.to_string());
                    command.env("HAMLYN_MEMORY", "64M");
                    start(&mut command)?;
                }
            }
            Launcher::Other(words) => match words.split_first() {
                Some((launcher, arguments)) => {
                    let mut command = Command::new(launcher);
                    command.args(arguments).arg(processes.to_string());
                    start(command.arg(program).args(rest).arg(&milliseconds))?;
                }
                None => {
                    let mut command = Command::new(program);
                    start(
                        command
                            .args(rest)
                            .arg(processes.to_string())
                            .arg(&milliseconds),
                    )?;
                }
            },
        }
        // What they print is less than a pipe holds.
        let until = Instant::now() + TIME_MAX;
        while children
            .iter_mut()
            .any(|child| matches!(child.try_wait(), Ok(None)))
        {
            if Instant::now() >= until || interruption::check().is_err() {
                for child in &mut children {
                    // It may have ended just now.
                    let _ = child.kill();
                }
                bail!("it did not end within {TIME_MAX:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut figures = Vec::new();
        for child in children {
            let output = child.wait_with_output().context("waiting for a program")?;
            let errors = String::from_utf8_lossy(&output.stderr);
            let line = errors.lines().find(|line| line.contains("rror"));
            ensure!(
                output.status.success(),
                "{}: {}",
                output.status,
                line.or_else(|| errors.lines().last())
                    .unwrap_or("it said nothing")
            );
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                figures
                    .push(figure(line, processes).with_context(|| format!("what is {line:?}?"))?);
            }
        }
        ensure!(!figures.is_empty(), "it printed no figures");
        Ok(figures)
    }
}

/// A line that a program prints.
fn figure(line: &str, processes: u32) -> Option<(Figure, f64)> {
    let mut words = line.split(' ');
    let operation = match words.next()? {
        "read" => Operation::Read,
        "write" => Operation::Write,
        "stream" => Operation::Stream,
        "add" => Operation::Add,
        "updates" => Operation::Updates,
        "em3d" => Operation::Em3d,
        "sort" => Operation::Sort,
        _ => return None,
    };
    let size_bytes = words.next()?.parse().ok()?;
    let value: f64 = words.next()?.parse().ok()?;
    let figure = Figure {
        operation,
        size_bytes,
        processes,
    };
    (words.next().is_none() && value > 0.0).then_some((figure, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood_or_refused() {
        let expected = Figure {
            operation: Operation::Stream,
            size_bytes: 64,
            processes: 2,
        };
        assert_eq!(figure("stream 64 12.5", 2), Some((expected, 12.5)));
        for bad in [
            "",
            "stream 64",
            "stream 64 0",
            "stream x 1",
            "other 8 1",
            "add 8 1 1",
            "add 8 NaN",
        ] {
            assert_eq!(figure(bad, 2), None, "{bad:?}");
        }
    }
}
