//! The two hosts, and the peers that are compared between them.

use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use hamlyn_testbed::Testbed;

use crate::catalogue::{self, Build, HAMLYN, Library, Peer, Places, WarmUp, text};

/// What a packet of the network carries, in bytes.
pub(crate) const MTU_BYTES: u32 = 1_500;

/// A receiver's and a sender's.
pub(crate) struct Hosts {
    testbed: Testbed,
    /// Files that go with it.
    directory: tempfile::TempDir,
}

impl Hosts {
    pub(crate) fn make() -> Result<Self> {
        let testbed = Testbed::with_names(&["receiver", "sender"], MTU_BYTES)
            .context("two hosts are needed to measure between them")?;
        let directory = tempfile::tempdir().context("a directory for the hosts")?;
        let hosts = Self { testbed, directory };
        for door in [Door::Clear, Door::Encrypted] {
            let table = hosts
                .testbed
                .hosts()
                .iter()
                .fold(String::new(), |all, host| {
                    format!("{all}{} {}:{}\n", host.name(), host.address(), door as u16)
                });
            std::fs::write(hosts.table(door), table).context("the table of hosts")?;
        }
        Ok(hosts)
    }

    /// Which runs the program on the host of that role.
    pub(crate) fn command(&self, role: usize, program: &std::ffi::OsStr) -> Command {
        let host = &self.testbed.hosts()[role.min(1)];
        let mut command = host.command(program);
        command
            .env("COMPARE_OWN", host.address().to_string())
            .env("COMPARE_RECEIVER", self.address(0).to_string())
            .env("COMPARE_SENDER", self.address(1).to_string())
            .env("HAMLYN_HOST", host.name())
            .env("HAMLYN_HOSTS", self.table(Door::Clear))
            .env("COMPARE_HOSTS_ENCRYPTED", self.table(Door::Encrypted))
            .env("HAMLYN_LISTEN", host.address().to_string());
        command
    }

    pub(crate) fn address(&self, role: usize) -> Ipv4Addr {
        self.testbed.hosts()[role].address()
    }

    fn table(&self, door: Door) -> PathBuf {
        self.directory.path().join(format!("hosts.{}", door as u16))
    }

    /// A script that starts both processes of a program of GASNet-EX over UDP, one on each host.
    fn gasnet(&self, program: &Path) -> Result<PathBuf> {
        let workers = self.directory.path().join("workers");
        let starts: String = (self.testbed.hosts().iter())
            .map(|host| format!("{} \"$@\" &\n", words(&host.command("env"))))
            .collect();
        std::fs::write(&workers, format!("{starts}wait\n")).context("a script for GASNet-EX")?;
        let script = self.directory.path().join("gasnet");
        let text = format!(
            "export GASNET_SPAWNFN=C GASNET_CSPAWN_CMD='sh {} %C' GASNET_MASTERIP={}\n\
             exec '{}' 2 \"$@\"\n",
            workers.display(),
            self.address(0),
            program.display()
        );
        std::fs::write(&script, text).context("a script for GASNet-EX")?;
        Ok(script)
    }

    /// A command by which Open MPI's launcher reaches the other host.
    fn agent(&self) -> Result<PathBuf> {
        let path = self.directory.path().join("reach");
        let cases: String = self
            .testbed
            .hosts()
            .iter()
            .fold(String::new(), |all, host| {
                format!(
                    "{all}{}) exec {} -c \"$*\" ;;\n",
                    host.address(),
                    words(&host.command("sh"))
                )
            });
        let script = format!("#!/bin/sh\nhost=$1\nshift\ncase $host in\n{cases}esac\nexit 1\n");
        let mut file = std::fs::File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o700)
            .open(&path)
            .context("a command that reaches the other host")?;
        file.write_all(script.as_bytes())?;
        Ok(path)
    }
}

/// A command for the shell.
fn words(command: &Command) -> String {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    words.join(" ")
}

/// Where Hamlyn's doorkeepers listen, so that links in the clear and others stand side by side.
#[derive(Clone, Copy)]
enum Door {
    Clear = 7407,
    Encrypted = 7408,
}

pub(crate) const LIBRARIES: &[Library] = &[
    Library {
        build: Build::Cargo {
            packages: &["compare-hamlyn", "compare-active"],
        },
        ..library(HAMLYN, "Hamlyn")
    },
    library("ucx", "UCX"),
    library("libfabric", "libfabric"),
    library("openmpi", "Open MPI"),
    library("zeromq", "ZeroMQ"),
    library("aeron", "Aeron"),
    Library {
        name: "quic",
        label: "QUIC (quinn)",
        build: Build::Cargo {
            packages: &["compare-quic"],
        },
        version: &["cargo", "pkgid", "quinn"],
    },
    catalogue::UCX_AM,
    Library {
        build: Build::Gasnet { conduit: "udp" },
        ..catalogue::GASNET
    },
];

/// One that is also compared on one host.
const fn library(name: &'static str, label: &'static str) -> Library {
    let mut at = 0;
    while at < catalogue::LIBRARIES.len() {
        let library = catalogue::LIBRARIES[at];
        if is_same(library.name, name) {
            return Library { label, ..library };
        }
        at += 1;
    }
    panic!("not in the catalogue")
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// All that are compared between hosts, ours first.
pub(crate) fn catalogue(places: &Places, hosts: &Hosts) -> Result<Vec<Peer>> {
    let path = |path: &Path| vec![catalogue::word(path)];
    let built = |name: &str| path(&places.built().join(name));
    let hamlyn = |name, label, variant| {
        let program = path(&places.binaries.join("compare-hamlyn"));
        Peer::each(HAMLYN, name, label, program, variant)
    };
    let clear = &[("HAMLYN_INSECURE", "1")];
    let encrypted = &[("COMPARE_ENCRYPTED", "1")];
    let quic = path(&places.binaries.join("compare-quic"));
    let mpi = openmpi(hosts, places)?;
    let gasnet = hosts.gasnet(&places.built().join("gasnet_udp"))?;
    Ok(vec![
        hamlyn(super::REFERENCE, "Hamlyn, raw interface, clear", "raw").environment(clear),
        hamlyn(
            "hamlyn_raw_encrypted",
            "Hamlyn, raw interface, encrypted",
            "raw",
        )
        .environment(encrypted),
        hamlyn(
            "hamlyn_many",
            "Hamlyn, 64 messages in a call, clear",
            "many",
        )
        .environment(clear),
        hamlyn("hamlyn_stream", "Hamlyn, stream, clear", "stream").environment(clear),
        hamlyn(
            "hamlyn_stream_encrypted",
            "Hamlyn, stream, encrypted",
            "stream",
        )
        .environment(encrypted),
        Peer::perftest("ucx_tcp_tag", "UCX tcp, tag", "tag_lat", "tag_bw"),
        Peer::perftest(
            "ucx_tcp_am",
            "UCX tcp, active message",
            "ucp_am_lat",
            "ucp_am_bw",
        ),
        Peer::each(
            "libfabric",
            "libfabric_tcp",
            "libfabric tcp",
            built("libfabric"),
            "tcp",
        ),
        Peer::each("openmpi", "openmpi_tcp", "Open MPI tcp", mpi, "openmpi")
            .launched()
            .environment(&[
                ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
                ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ]),
        Peer::each("zeromq", "zeromq_tcp", "ZeroMQ tcp", built("zeromq"), "tcp").floating(),
        Peer::each(
            "aeron",
            "aeron_udp",
            "Aeron UDP",
            catalogue::aeron(&places.built()),
            "udp",
        )
        .warm_up(WarmUp {
            round_trips: 20_000,
            messages: 2_000_000,
        }),
        Peer::each("quic", "quic", "QUIC (quinn), encrypted", quic, "stream"),
        Peer::each(
            HAMLYN,
            catalogue::AM,
            "Hamlyn, Rust, clear",
            path(&places.binaries.join("compare-active")),
            "am",
        )
        .active()
        .environment(clear),
        Peer::each(
            catalogue::GASNET.name,
            "gasnet_udp",
            "GASNet-EX udp",
            [text(&["sh"]), path(&gasnet)].concat(),
            "udp",
        )
        .launched()
        .active(),
        Peer::each(
            catalogue::UCX_AM.name,
            "ucx_am_tcp",
            "UCX tcp",
            built("ucx_am"),
            "am",
        )
        .active()
        .environment(&[("UCX_TLS", "tcp,self"), ("UCX_NET_DEVICES", "eth0")]),
    ])
}

/// The launcher runs on the receiver's host, and reaches the other one by a command of ours.
fn openmpi(hosts: &Hosts, places: &Places) -> Result<Vec<catalogue::Word>> {
    let both = format!("{}:1,{}:1", hosts.address(0), hosts.address(1));
    let mut words = text(&["mpirun.openmpi", "--bind-to", "none", "--host", &both]);
    words.extend(text(&["--mca", "plm_rsh_agent"]));
    words.push(catalogue::word(&hosts.agent()?));
    words.extend(text(&["--mca", "pml", "ob1", "--mca", "btl", "self,tcp"]));
    words.extend(text(&["--mca", "btl_tcp_if_include", "eth0"]));
    words.extend(text(&["--mca", "oob_tcp_if_include", "eth0"]));
    words.extend(text(&["--mca", "mpi_yield_when_idle", "0", "-n", "2"]));
    words.push(catalogue::word(&places.built().join("openmpi")));
    Ok(words)
}
