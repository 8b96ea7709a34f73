//! What is installed and built, and how its version is known.

use super::{Build, HAMLYN, Library, MACHINE};

/// A program in C, from the source of that name.
pub(crate) const fn of_c(source: &'static str, libraries: &'static [&'static str]) -> Build {
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
        build: of_c("raw", &[]),
        version: &["uname", "-r"],
    },
    Library {
        name: HAMLYN,
        label: "Hamlyn",
        build: Build::Cargo {
            packages: &["compare-hamlyn"],
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
        build: of_c("libfabric", &["-lfabric"]),
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
            packages: &["compare-iceoryx2"],
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
        build: of_c("zeromq", &["-lzmq"]),
        version: &["dpkg-query", "-W", "-f", "${Version}", "libzmq3-dev"],
    },
    Library {
        name: "nng",
        label: "nng",
        build: of_c("nng", &["-lnng"]),
        version: &["dpkg-query", "-W", "-f", "${Version}", "libnng-dev"],
    },
    Library {
        name: "kernel",
        label: "UNIX sockets, pipes",
        build: of_c("kernel", &[]),
        version: &["uname", "-r"],
    },
    Library {
        name: "python",
        label: "Python multiprocessing",
        build: Build::Nothing,
        version: &["python3", "--version"],
    },
];

/// GASNet-EX, of a later Debian.
pub(crate) const GASNET: Library = Library {
    name: "gasnet",
    label: "GASNet-EX",
    build: Build::Gasnet { conduit: "smp" },
    version: &["sh", "-c", "cat \"$COMPARE_BUILT/debian/version\""],
};
/// UCX with handlers of ours.
pub(crate) const UCX_AM: Library = Library {
    name: "ucx_am",
    label: "UCX active messages",
    build: of_c("ucx_am", &["-lucp", "-lucs"]),
    version: &["dpkg-query", "-W", "-f", "${Version}", "libucx-dev"],
};
