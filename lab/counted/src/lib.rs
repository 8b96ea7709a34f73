//! Instructions of a message, the library included, counted by callgrind.
//!
//! [`program`] is what is counted; [`instructions`] counts it, and [`c_face`] what a call through C
//! takes more. A package of its own, so that the gate of `make test` builds only the library and
//! this with optimisation. `hamlyn-lab bench --instructions` counts with it too, of itself.

#![forbid(unsafe_code)]

pub mod c_face;
pub mod calls;
pub mod echo;
pub mod instructions;
pub mod program;

use std::str::FromStr;

/// What carries a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Protocol {
    /// The lower layer, in fast mode.
    Raw,
    /// A tagged write.
    Tagged,
    /// A datagram.
    Datagram,
    /// A record of a stream.
    Stream,
    /// A message to a port, of which each word is read where it lies.
    Port,
    /// A message to a mailbox.
    Mailbox,
}

impl Protocol {
    /// Each of them.
    pub const ALL: [Self; 6] = [
        Self::Raw,
        Self::Tagged,
        Self::Datagram,
        Self::Stream,
        Self::Port,
        Self::Mailbox,
    ];

    /// As reports and commands call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "fast_mode",
            Self::Tagged => "tagged_write",
            Self::Datagram => "datagram",
            Self::Stream => "stream",
            Self::Port => "port",
            Self::Mailbox => "mailbox",
        }
    }
}

/// No protocol has that name.
#[derive(Debug)]
pub struct NoProtocol(String);

impl std::fmt::Display for NoProtocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = Protocol::ALL.map(Protocol::name).join(", ");
        write!(f, "{:?} is no protocol: one of {names}", self.0)
    }
}

impl std::error::Error for NoProtocol {}

impl FromStr for Protocol {
    type Err = NoProtocol;

    fn from_str(name: &str) -> Result<Self, NoProtocol> {
        let named = Self::ALL
            .into_iter()
            .find(|protocol| protocol.name() == name);
        named.ok_or_else(|| NoProtocol(name.to_owned()))
    }
}
