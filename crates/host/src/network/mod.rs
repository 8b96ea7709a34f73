//! The network side of the embedded host: interfaces of other hosts, without a daemon.
//!
//! * [`hosts`]: hosts by name.
//! * [`handshake_payload`]: requests and answers between two processes before there is a link.
//! * [`options`]: what can be set.
//! * `credentials`: by which a host proves who it is.
//! * `connector`: shakes hands, sends a request and returns the answer.
//! * `resolver`: finds, asks and links interfaces of other hosts.
//! * `endpoint_driver`: what the control thread does for the UDP endpoint.
//! * `name_service`: tells other hosts the ports of this host's interfaces.
//! * `unheard`: tells of handshakes by those who cannot be authenticated.
//! * `trace`: the file to which the frames of this process are written, if one is wanted.
//!
//! # Trust
//!
//! With keys of hosts each host is trusted about its own users and names. A holder of the cluster's
//! secret is trusted about these, and about which host it is. All other input from the network is
//! untrusted bytes, costs next to nothing and changes nothing.

mod connector;
mod credentials;
pub(crate) mod endpoint_driver;
pub mod handshake_payload;
pub mod hosts;
pub(crate) mod name_service;
pub mod options;
pub(crate) mod resolver;
mod trace;
pub(crate) mod unheard;

pub use hamlyn_link::trace::Trace;
pub use hamlyn_link::udp::key_file::{ClusterSecret, HostKey, PublicKey};
pub use options::{NetworkOptions, Security};

use std::path::PathBuf;

use hosts::HostName;

/// The network cannot be used as was said.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A host cannot have that name.
    #[error("the host {name:?} cannot be named so: {reason}")]
    HostName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Two hosts that tickets could not tell apart.
    #[error("the hosts {one} and {other} have the same number by bad luck: rename one of them")]
    SameNumber {
        /// One name.
        one: HostName,
        /// The other.
        other: HostName,
    },
    /// A table of hosts that cannot be read.
    #[error("line {line} of the table of hosts: {reason}")]
    HostsLine {
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that cannot be read.
    #[error("{what}: {}: {error}", path.display())]
    File {
        /// What it is to say.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// The system's reason.
        error: String,
    },
    /// Neither a secret nor keys, and nobody said that none are wanted.
    #[error(
        "the network needs keys of hosts (HAMLYN_KEY and HAMLYN_KNOWN), or the secret of the cluster (HAMLYN_SECRET), or the word that none is wanted (HAMLYN_INSECURE=1)"
    )]
    NoSecret,
    /// This host goes by a name that is not that of its key.
    #[error(
        "this host's key (HAMLYN_KEY) is that of {listed} in the list (HAMLYN_KNOWN), and this host calls itself {host}: set HAMLYN_HOST={listed}"
    )]
    NotOwnName {
        /// The name of the key.
        listed: String,
        /// The name by which this host goes.
        host: HostName,
    },
    /// A secret or a key that cannot be used.
    #[error("{0}")]
    Key(String),
    /// The trace that the environment wants (`HAMLYN_TRACE`) cannot be written.
    #[error("no trace in {}: {reason}", path.display())]
    Trace {
        /// Where.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A variable of the environment that cannot be understood.
    #[error("{variable}={value:?}: {reason}")]
    Variable {
        /// Which.
        variable: &'static str,
        /// What it says.
        value: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}
