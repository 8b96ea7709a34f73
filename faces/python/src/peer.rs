//! Who a peer is.

use hamlyn::PeerIdentity;
use pyo3::prelude::*;

/// A peer, as the kernel vouches on one host and the handshake between hosts. The name that it gives itself is not in here.
#[pyclass(frozen, eq, hash, module = "hamlyn")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Peer {
    pub(crate) identity: PeerIdentity,
}

impl Peer {
    pub(crate) fn new(identity: PeerIdentity) -> Self {
        Self { identity }
    }
}

#[pymethods]
impl Peer {
    /// The number of its host; 0 is this one.
    #[getter]
    fn node(&self) -> u32 {
        self.identity.interface.node
    }

    /// Its user.
    #[getter]
    fn user(&self) -> u32 {
        self.identity.interface.user
    }

    /// Its group; 0 if it is on another host.
    #[getter]
    fn group(&self) -> u32 {
        self.identity.group
    }

    /// Its process; 0 if that is not visible here.
    #[getter]
    fn process(&self) -> u32 {
        self.identity.process
    }

    /// The number of its interface, which no other has.
    #[getter]
    fn interface(&self) -> u64 {
        self.identity.interface.interface
    }

    fn __str__(&self) -> String {
        self.identity.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<hamlyn.Peer: {}>", self.identity)
    }
}
