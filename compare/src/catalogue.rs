//! The catalogue of peers, and how each is started. Why each is run that way is in `compare/README.md`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::figure::Figure;

/// Peers that are installed and built together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Library {
    /// For `--only`.
    pub(crate) name: &'static str,
    /// For people.
    pub(crate) label: &'static str,
    /// How it is built; `None` if there is nothing to build.
    pub(crate) build: Build,
    /// A command that prints its version.
    pub(crate) version: &'static [&'static str],
}

/// How a library's programs are built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Build {
    /// `compiler -o program peers/<directory>/<source>.c libraries`.
    C {
        compiler: &'static str,
        source: &'static str,
        program: &'static str,
        libraries: &'static [&'static str],
    },
    /// A package of this workspace.
    Cargo { package: &'static str },
    /// A directory with a `pom.xml` and one class.
    Java { directory: &'static str },
    /// Nothing.
    Nothing,
}

/// How the processes of a session come to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Start {
    /// The comparison starts each.
    Each,
    /// The peer's own launcher starts all.
    Launcher,
}

/// A word of a command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    Text(OsString),
    /// The number of processes.
    Processes,
}

/// Programs that take orders (see `session`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Program {
    words: Vec<Word>,
    pub(crate) variant: &'static str,
    pub(crate) start: Start,
    /// Whether each process stays on one core; if not, all have both.
    pub(crate) confined: bool,
    pub(crate) environment: Vec<(&'static str, &'static str)>,
}

impl Program {
    /// Processes that the comparison starts, each on a core of its own.
    fn each(words: Vec<Word>, variant: &'static str) -> Self {
        Self {
            words,
            variant,
            start: Start::Each,
            confined: true,
            environment: Vec::new(),
        }
    }

    #[cfg(test)]
    pub(crate) fn of(words: &[&str], variant: &'static str) -> Self {
        Self::each(text(words), variant)
    }

    /// The command for a session of so many senders, but for the arguments that all programs take.
    pub(crate) fn command(&self, senders: usize) -> Vec<OsString> {
        self.words
            .iter()
            .map(|word| match word {
                Word::Text(text) => text.clone(),
                Word::Processes => (senders + 1).to_string().into(),
            })
            .collect()
    }
}

/// Messages before those that count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WarmUp {
    pub(crate) round_trips: u64,
    /// One way, of all senders together.
    pub(crate) messages: u64,
}

/// What measures a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Means {
    Session(Program),
    /// `ucx_perftest`, with these tests for time and for bandwidth.
    Perftest {
        time: &'static str,
        bandwidth: &'static str,
    },
}

/// One line of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Peer {
    /// For programs.
    pub(crate) name: &'static str,
    /// For people.
    pub(crate) label: &'static str,
    pub(crate) library: &'static str,
    pub(crate) means: Means,
    /// Whether several senders can send to one receiver.
    pub(crate) crowd: bool,
    /// Whether it loans messages, and does nothing else.
    pub(crate) loans: bool,
    /// What it needs before it is at its speed, for languages that compile as they run.
    pub(crate) warm_up: Option<WarmUp>,
}

impl Peer {
    /// Whether it is one of ours.
    pub(crate) fn is_ours(&self) -> bool {
        self.library == HAMLYN
    }

    /// Whether it is the machine itself.
    pub(crate) fn is_machine(&self) -> bool {
        self.library == MACHINE
    }

    /// Processes that the comparison starts, each on a core of its own.
    pub(crate) fn each(
        library: &'static str,
        name: &'static str,
        label: &'static str,
        words: Vec<Word>,
        variant: &'static str,
    ) -> Self {
        Self {
            name,
            label,
            library,
            means: Means::Session(Program::each(words, variant)),
            crowd: false,
            loans: false,
            warm_up: None,
        }
    }

    pub(crate) fn perftest(
        name: &'static str,
        label: &'static str,
        time: &'static str,
        bandwidth: &'static str,
    ) -> Self {
        Self {
            name,
            label,
            library: "ucx",
            means: Means::Perftest { time, bandwidth },
            crowd: false,
            loans: false,
            warm_up: None,
        }
    }

    /// Whether that figure is measured of it.
    pub(crate) fn measures(&self, figure: Figure) -> bool {
        match figure {
            Figure::Loaned { .. } => self.loans,
            Figure::Senders { .. } => self.crowd,
            Figure::OneWay { .. } | Figure::Rate | Figure::Bandwidth { .. } => !self.loans,
        }
    }

    /// It loans messages, and does nothing else.
    fn loans(mut self) -> Self {
        self.loans = true;
        self
    }

    /// Several senders can send to one receiver.
    fn crowd(mut self) -> Self {
        self.crowd = true;
        self
    }

    pub(crate) fn warm_up(mut self, warm_up: WarmUp) -> Self {
        self.warm_up = Some(warm_up);
        self
    }

    /// Its own launcher starts the processes.
    pub(crate) fn launched(self) -> Self {
        self.program(|program| program.start = Start::Launcher)
    }

    /// It has threads of its own, so its processes have both cores.
    pub(crate) fn floating(self) -> Self {
        self.program(|program| program.confined = false)
    }

    pub(crate) fn environment(self, variables: &[(&'static str, &'static str)]) -> Self {
        self.program(|program| program.environment = variables.to_vec())
    }

    fn program(mut self, change: impl FnOnce(&mut Program)) -> Self {
        if let Means::Session(program) = &mut self.means {
            change(program);
        }
        self
    }
}

pub(crate) const HAMLYN: &str = "hamlyn";
pub(crate) const MACHINE: &str = "machine";
/// What the others are compared with.
pub(crate) const REFERENCE: &str = "hamlyn_raw";
/// What the others' loans are compared with.
pub(crate) const LOANS: &str = "hamlyn_loans";

/// Which of ours the others are compared with.
pub(crate) fn reference_of(figure: Figure) -> &'static str {
    match figure {
        Figure::Loaned { .. } => LOANS,
        _ => REFERENCE,
    }
}

/// Ours with many messages in a call, which nobody else is measured with.
pub(crate) const BATCHED: &str = "hamlyn_many";
/// The hand-off of a cache line, and one copy.
pub(crate) const RAW: &str = "machine_raw";

const fn c(source: &'static str, libraries: &'static [&'static str]) -> Build {
    Build::C {
        compiler: "cc",
        source,
        program: source,
        libraries,
    }
}

pub(crate) const LIBRARIES: &[Library] = &[
    Library {
        name: MACHINE,
        label: "the machine itself",
        build: c("raw", &[]),
        version: &["uname", "-r"],
    },
    Library {
        name: HAMLYN,
        label: "Hamlyn",
        build: Build::Cargo {
            package: "compare-hamlyn",
        },
        version: &["git", "describe", "--always", "--dirty"],
    },
    Library {
        name: "ucx",
        label: "UCX",
        build: Build::Nothing,
        version: &["dpkg-query", "-W", "-f", "${Version}", "ucx-utils"],
    },
    Library {
        name: "libfabric",
        label: "libfabric shm",
        build: c("libfabric", &["-lfabric"]),
        version: &["dpkg-query", "-W", "-f", "${Version}", "libfabric-dev"],
    },
    Library {
        name: "openmpi",
        label: "Open MPI",
        build: Build::C {
            compiler: "mpicc.openmpi",
            source: "mpi",
            program: "openmpi",
            libraries: &[],
        },
        version: &["dpkg-query", "-W", "-f", "${Version}", "openmpi-bin"],
    },
    Library {
        name: "mpi_put",
        label: "Open MPI, one-sided",
        build: Build::C {
            compiler: "mpicc.openmpi",
            source: "mpi_put",
            program: "mpi_put",
            libraries: &[],
        },
        version: &["dpkg-query", "-W", "-f", "${Version}", "openmpi-bin"],
    },
    Library {
        name: "mpich",
        label: "MPICH",
        build: Build::C {
            compiler: "mpicc.mpich",
            source: "mpi",
            program: "mpich",
            libraries: &["-Wno-stringop-overflow"],
        },
        version: &["dpkg-query", "-W", "-f", "${Version}", "mpich"],
    },
    Library {
        name: "iceoryx2",
        label: "iceoryx2",
        build: Build::Cargo {
            package: "compare-iceoryx2",
        },
        version: &["cargo", "pkgid", "iceoryx2"],
    },
    Library {
        name: "aeron",
        label: "Aeron IPC",
        build: Build::Java { directory: "aeron" },
        version: &[
            "sed",
            "-n",
            "s:.*<aeron.version>\\(.*\\)</aeron.version>.*:\\1:p",
            "peers/aeron/pom.xml",
        ],
    },
    Library {
        name: "zeromq",
        label: "ZeroMQ",
        build: c("zeromq", &["-lzmq"]),
        version: &["dpkg-query", "-W", "-f", "${Version}", "libzmq3-dev"],
    },
    Library {
        name: "nng",
        label: "nng",
        build: c("nng", &["-lnng"]),
        version: &["dpkg-query", "-W", "-f", "${Version}", "libnng-dev"],
    },
    Library {
        name: "kernel",
        label: "UNIX sockets, pipes",
        build: c("kernel", &[]),
        version: &["uname", "-r"],
    },
    Library {
        name: "python",
        label: "Python multiprocessing",
        build: Build::Nothing,
        version: &["python3", "--version"],
    },
];

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
        self.compare.join("../docs/comparison.md")
    }

    /// Where programs are put that Cargo does not build.
    pub(crate) fn built(&self) -> PathBuf {
        self.binaries.join("peers")
    }
}

pub(crate) fn text(words: &[&str]) -> Vec<Word> {
    words.iter().map(|word| Word::Text(word.into())).collect()
}

pub(crate) fn word(path: &Path) -> Word {
    Word::Text(path.into())
}

fn path(path: &Path) -> Vec<Word> {
    vec![word(path)]
}

/// All that can be compared, ours first.
pub(crate) fn catalogue(places: &Places) -> Vec<Peer> {
    let binary = |name: &str| path(&places.binaries.join(name));
    let built = |name: &str| path(&places.built().join(name));
    let hamlyn =
        |name, label, variant| Peer::each(HAMLYN, name, label, binary("compare-hamlyn"), variant);
    let iceoryx2 = |name, label, variant| {
        Peer::each("iceoryx2", name, label, binary("compare-iceoryx2"), variant)
    };
    let kernel = |name, label| Peer::each("kernel", name, label, built("kernel"), name).crowd();
    let script = path(&places.compare.join("peers/python/exchange.py"));
    let machine = |name, label, variant| Peer::each(MACHINE, name, label, built("raw"), variant);
    let python = |name, label, variant| {
        let words = [text(&["python3"]), script.clone()].concat();
        Peer::each("python", name, label, words, variant)
            .launched()
            .crowd()
    };
    vec![
        hamlyn(REFERENCE, "Hamlyn, raw interface", "raw").crowd(),
        hamlyn("hamlyn_direct", "Hamlyn, direct placement", "direct"),
        hamlyn(BATCHED, "Hamlyn, 64 messages in a call", "many").crowd(),
        hamlyn("hamlyn_tagged", "Hamlyn, tagged write", "tagged"),
        hamlyn("hamlyn_datagram", "Hamlyn, datagram", "datagram"),
        hamlyn("hamlyn_stream", "Hamlyn, stream", "stream"),
        hamlyn(LOANS, "Hamlyn, loans", "loans").loans(),
        machine(RAW, "the machine itself", "raw"),
        machine("machine_library", "the machine, memcpy", "library"),
        machine("machine_past", "the machine, past the caches", "past"),
        Peer::perftest("ucx_put", "UCX put", "ucp_put_lat", "ucp_put_bw"),
        Peer::perftest("ucx_tag", "UCX tag", "tag_lat", "tag_bw"),
        Peer::perftest("ucx_am", "UCX active message", "ucp_am_lat", "ucp_am_bw"),
        Peer::each(
            "libfabric",
            "libfabric_shm",
            "libfabric shm",
            built("libfabric"),
            "shm",
        ),
        Peer::each(
            "openmpi",
            "openmpi",
            "Open MPI",
            openmpi(built("openmpi")),
            "openmpi",
        )
        .launched()
        .crowd()
        .environment(AS_ROOT),
        Peer::each(
            "mpi_put",
            "mpi_put",
            "Open MPI, MPI_Put and a flag",
            openmpi(built("mpi_put")),
            "put",
        )
        .launched()
        .environment(AS_ROOT),
        Peer::each("mpich", "mpich", "MPICH", mpich(built("mpich")), "mpich")
            .launched()
            .crowd(),
        iceoryx2("iceoryx2_copy", "iceoryx2, copied in and out", "copy").crowd(),
        iceoryx2(
            "iceoryx2_loan",
            "iceoryx2, written and read in place",
            "loan",
        ),
        iceoryx2("iceoryx2_loans", "iceoryx2, loans", "loans").loans(),
        Peer::each(
            "aeron",
            "aeron_ipc",
            "Aeron IPC",
            aeron(&places.built()),
            "ipc",
        )
        .crowd()
        .warm_up(WarmUp {
            round_trips: 100_000,
            messages: 10_000_000,
        }),
        Peer::each("zeromq", "zeromq_ipc", "ZeroMQ ipc", built("zeromq"), "ipc")
            .floating()
            .crowd(),
        Peer::each("nng", "nng_ipc", "nng ipc", built("nng"), "ipc")
            .floating()
            .crowd(),
        kernel("unix_stream_poll", "UNIX stream socket, polled"),
        kernel("unix_stream_block", "UNIX stream socket, blocking"),
        kernel("unix_seqpacket_poll", "UNIX seqpacket socket, polled"),
        kernel("unix_seqpacket_block", "UNIX seqpacket socket, blocking"),
        kernel("pipe_poll", "pipe, polled"),
        kernel("pipe_block", "pipe, blocking"),
        python("python_pipe", "Python multiprocessing.Pipe", "pipe"),
        python("python_queue", "Python multiprocessing.Queue", "queue"),
    ]
}

/// Open MPI's launcher wants to be told twice.
const AS_ROOT: &[(&str, &str)] = &[
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
];

fn openmpi(program: Vec<Word>) -> Vec<Word> {
    let mut words = text(&["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]);
    words.extend(text(&["--mca", "pml", "ob1", "--mca", "btl", "self,vader"]));
    // Told that two processes share a core, it would yield after each look.
    words.extend(text(&["--mca", "mpi_yield_when_idle", "0", "-n"]));
    words.push(Word::Processes);
    words.extend(program);
    words
}

fn mpich(program: Vec<Word>) -> Vec<Word> {
    let mut words = text(&["mpirun.mpich", "-bind-to", "none", "-n"]);
    words.push(Word::Processes);
    words.extend(program);
    words
}

pub(crate) fn aeron(built: &Path) -> Vec<Word> {
    let mut classes = built.join("aeron").into_os_string();
    classes.push(":");
    classes.push(built.join("aeron/*"));
    let mut words = text(&[
        "java",
        "--add-opens",
        "java.base/jdk.internal.misc=ALL-UNNAMED",
        "-XX:-UseCountedLoopSafepoints",
        "-Dagrona.disable.bounds.checks=true",
        "-cp",
    ]);
    words.push(Word::Text(classes));
    words.extend(text(&["Peer"]));
    words
}
