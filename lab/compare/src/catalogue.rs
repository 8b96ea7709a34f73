//! The catalogue of peers, and how each is started. Why each is run that way is in
//! `lab/compare/README.md`.

mod libraries;
mod places;

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::figure::Figure;
pub(crate) use libraries::{GASNET, LIBRARIES, UCX_AM, of_c};
pub(crate) use places::Places;

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
    /// Packages of this workspace.
    Cargo { packages: &'static [&'static str] },
    /// `peers/<source>/<source>.c`, with a library in C of the product, and its headers.
    Face {
        package: &'static str,
        source: &'static str,
        /// The folder of its headers, in the product.
        headers: &'static str,
        libraries: &'static [&'static str],
    },
    /// `peers/gasnet/gasnet.c`, with a library of GASNet-EX and the C library of a later Debian.
    Gasnet { conduit: &'static str },
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

/// What a process does while it waits for a message. Peers of one kind are measured beside ours of
/// the same kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// It looks again and again, and occupies a processor.
    Polls,
    /// It sleeps until it is woken.
    Sleeps,
}

impl Waits {
    pub(crate) const ALL: [Self; 2] = [Waits::Polls, Waits::Sleeps];

    /// Ours that the others of that kind are compared with.
    pub(crate) fn reference(self) -> &'static str {
        match self {
            Waits::Polls => REFERENCE,
            Waits::Sleeps => SLEEPING,
        }
    }
}

/// What measures a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Means {
    Session(Program),
    /// `ucx_perftest`, with these tests for time and for bandwidth.
    Perftest {
        time: &'static str,
        bandwidth: &'static str,
        /// How it waits, in its own word.
        waits: &'static str,
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
    pub(crate) waits: Waits,
    /// Whether several senders can send to one receiver.
    pub(crate) crowd: bool,
    /// Whether it loans messages, and does nothing else.
    pub(crate) loans: bool,
    /// True if it runs handlers of active messages, and does nothing else.
    pub(crate) active: bool,
    /// What it needs before it is at its speed, for languages that compile as they run.
    pub(crate) warm_up: Option<WarmUp>,
}

impl Peer {
    /// Whether it is one of ours.
    pub(crate) fn is_ours(&self) -> bool {
        [HAMLYN, IN_C].contains(&self.library)
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
            waits: Waits::Polls,
            crowd: false,
            loans: false,
            active: false,
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
            means: Means::Perftest {
                time,
                bandwidth,
                waits: "poll",
            },
            waits: Waits::Polls,
            crowd: false,
            loans: false,
            active: false,
            warm_up: None,
        }
    }

    /// Its processes sleep while they wait.
    fn sleeps(mut self) -> Self {
        self.waits = Waits::Sleeps;
        if let Means::Perftest { waits, .. } = &mut self.means {
            *waits = "sleep";
        }
        self
    }

    /// Which of ours that figure of it is compared with.
    pub(crate) fn reference(&self, figure: Figure) -> &'static str {
        match figure {
            Figure::Loaned { .. } => LOANS,
            Figure::Active(_) => AM,
            _ => self.waits.reference(),
        }
    }

    /// Whether it is one of those that others are compared with, and so measured beside each of
    /// them.
    pub(crate) fn is_reference(&self) -> bool {
        [REFERENCE, SLEEPING, LOANS, AM].contains(&self.name)
    }

    /// Whether that figure is measured of it.
    pub(crate) fn measures(&self, figure: Figure) -> bool {
        match figure {
            Figure::Loaned { .. } => self.loans,
            Figure::Senders { .. } => self.crowd,
            Figure::OneWay { .. } | Figure::Rate { .. } | Figure::Bandwidth { .. } => {
                !self.loans && !self.active
            }
            Figure::Active(_) => self.active,
        }
    }

    /// It loans messages, and does nothing else.
    fn loans(mut self) -> Self {
        self.loans = true;
        self
    }

    /// It runs handlers of active messages, and does nothing else.
    pub(crate) fn active(mut self) -> Self {
        self.active = true;
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
/// What the others are compared with: those that poll, and those that sleep.
pub(crate) const REFERENCE: &str = "hamlyn_raw";
pub(crate) const SLEEPING: &str = "hamlyn_sleeping";
/// What the others' loans are compared with.
pub(crate) const LOANS: &str = "hamlyn_loans";
/// The one with which the others' active messages are compared.
pub(crate) const AM: &str = "hamlyn_am";
/// The library of our active messages in C.
pub(crate) const IN_C: &str = "hamlyn_c";

/// Ours with many messages in a call, which nobody else is measured with.
pub(crate) const BATCHED: &str = "hamlyn_many";
/// The hand-off of a cache line, and one copy.
pub(crate) const RAW: &str = "machine_raw";

/// The program of the peer of that name.
pub(crate) fn program<'a>(peers: &'a [Peer], name: &str) -> Result<&'a Program> {
    let peer = peers
        .iter()
        .find(|peer| peer.name == name)
        .context("not in the catalogue")?;
    match &peer.means {
        Means::Session(program) => Ok(program),
        Means::Perftest { .. } => bail!("{name} takes no orders"),
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
    let kernel = |name: &'static str, label| {
        let peer = Peer::each("kernel", name, label, built("kernel"), name).crowd();
        if name.ends_with("_block") {
            peer.sleeps()
        } else {
            peer
        }
    };
    let mpi_put = |name, label, component| {
        let words = openmpi(["osc", component], built("mpi_put"));
        Peer::each("mpi_put", name, label, words, "put")
            .launched()
            .environment(AS_ROOT)
    };
    let script = path(&places.compare.join("peers/python/exchange.py"));
    let machine = |name, label, variant| Peer::each(MACHINE, name, label, built("raw"), variant);
    let python = |name, label, variant| {
        let words = [text(&["python3"]), script.clone()].concat();
        Peer::each("python", name, label, words, variant)
            .launched()
            .crowd()
            .sleeps()
    };
    vec![
        hamlyn(REFERENCE, "Hamlyn, raw interface", "raw").crowd(),
        hamlyn("hamlyn_direct", "Hamlyn, direct placement", "direct"),
        hamlyn(BATCHED, "Hamlyn, 64 messages in a call", "many").crowd(),
        hamlyn("hamlyn_tagged", "Hamlyn, tagged write", "tagged"),
        hamlyn("hamlyn_datagram", "Hamlyn, datagram", "datagram"),
        hamlyn("hamlyn_stream", "Hamlyn, stream", "stream"),
        hamlyn(LOANS, "Hamlyn, loans", "loans").loans(),
        hamlyn(
            SLEEPING,
            "Hamlyn, raw interface, sleeping (after 16 looks)",
            "sleeping",
        )
        .crowd()
        .sleeps(),
        hamlyn(
            "hamlyn_default",
            "Hamlyn, raw interface, default (polls up to 20 µs)",
            "default",
        )
        .crowd()
        .sleeps(),
        machine(RAW, "the machine itself", "raw"),
        machine("machine_library", "the machine, memcpy", "library"),
        machine("machine_past", "the machine, past the caches", "past"),
        Peer::perftest("ucx_put", "UCX put", "ucp_put_lat", "ucp_put_bw"),
        Peer::perftest("ucx_tag", "UCX tag", "tag_lat", "tag_bw"),
        Peer::perftest("ucx_am", "UCX active message", "ucp_am_lat", "ucp_am_bw"),
        Peer::perftest("ucx_tag_sleep", "UCX tag, sleeping", "tag_lat", "tag_bw").sleeps(),
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
            openmpi(["btl_vader_eager_limit", "8192"], built("openmpi")),
            "openmpi",
        )
        .launched()
        .crowd()
        .environment(AS_ROOT),
        mpi_put("mpi_put", "Open MPI, MPI_Put and a flag", "rdma"),
        mpi_put("mpi_put_sm", "Open MPI, MPI_Put and a flag, osc sm", "sm"),
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
            .crowd()
            .sleeps(),
        Peer::each("nng", "nng_ipc", "nng ipc", built("nng"), "ipc")
            .floating()
            .crowd()
            .sleeps(),
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
pub(crate) const AS_ROOT: &[(&str, &str)] = &[
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
];

fn openmpi([name, value]: [&str; 2], program: Vec<Word>) -> Vec<Word> {
    let mut words = text(&["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]);
    words.extend(text(&["--mca", "pml", "ob1", "--mca", "btl", "self,vader"]));
    // Told that two processes share a core, it would yield after each look.
    words.extend(text(&["--mca", "mpi_yield_when_idle", "0"]));
    words.extend(text(&["--mca", name, value, "-n"]));
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
