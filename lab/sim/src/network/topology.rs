//! Topologies: hosts, switches and the cables between them. Plain data, made by a generator
//! ([`Topology::fat_tree`] and others), and checked before it is used.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use crate::time::Span;

mod generate;

pub use generate::Subclusters;

/// Time of a byte on a cable of the paper's network: 80 MB/s (Hamlyn 4).
pub const PAPER_PS_PER_BYTE: u64 = 12_500;
/// Time of a packet's head in a switch of the paper's network (Hamlyn 4).
pub const PAPER_SWITCH_LATENCY: Span = Span::from_ns(500);
/// Ports of a switch of the paper's network (Hamlyn 4).
pub const PAPER_PORTS: u16 = 8;
/// What an input of a switch can hold, unless told otherwise, in bytes. The paper does not say.
pub const DEFAULT_BUFFER_BYTES: u64 = 256;

/// Switches, times those of them that have hosts; 8 bytes are kept for each.
const TABLE_MAX: usize = 1 << 25;

/// How a switch passes a frame on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switching {
    /// As soon as its head is there. A frame that is stopped holds the cables over which it
    /// stretches.
    Wormhole,
    /// When all of it is there. An input's buffer must hold it.
    StoreAndForward,
}

/// A host. It has one cable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// For people.
    pub name: String,
}

/// A crossbar: any input to any free output; inputs that want the same one have turns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Switch {
    /// For people.
    pub name: String,
    /// How many ports, each with an input and an output.
    pub ports: u16,
    /// From a frame's head at the input until it can be at the output.
    pub latency: Span,
    /// How it passes frames on.
    pub switching: Switching,
}

/// Where a cable ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    /// At a host, by its number.
    Host(u32),
    /// At a switch, by its number, and at which port.
    Switch(u32, u16),
}

/// A cable, both directions at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cable {
    /// Its ends.
    pub ends: [End; 2],
    /// Time of a byte, not 0.
    pub ps_per_byte: u64,
    /// From one end to the other.
    pub delay: Span,
    /// What the input of a switch at its end can hold of what came over it, in bytes; what is in
    /// the cable and in the switch is part of it.
    pub buffer_bytes: u64,
    /// So many of a million frames that enter it are lost.
    pub loses_per_million: u32,
    /// So many of a million frames that enter it are damaged.
    pub damages_per_million: u32,
}

impl Cable {
    /// A cable of the paper's network without length (Hamlyn 4).
    pub fn paper(one: End, other: End) -> Self {
        Self {
            ends: [one, other],
            ps_per_byte: PAPER_PS_PER_BYTE,
            delay: Span::ZERO,
            buffer_bytes: DEFAULT_BUFFER_BYTES,
            loses_per_million: 0,
            damages_per_million: 0,
        }
    }
}

/// Hosts, switches, cables. A host's number is its place in the list, and its [`super::HostId`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Topology {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The switches.
    pub switches: Vec<Switch>,
    /// The cables.
    pub cables: Vec<Cable>,
}

/// What is wrong with a topology, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// Nothing to send or to receive.
    #[error("there are no hosts: name at least one")]
    NoHosts,
    /// A cable leads to something that is not there.
    #[error("cable {cable} ends at {end}, which does not exist: add it or correct the cable")]
    NoEnd {
        /// The cable, by its place.
        cable: usize,
        /// The missing end.
        end: String,
    },
    /// Two cables in one place.
    #[error("cable {cable} ends at {end}, where cable {other} is already: use another port")]
    Taken {
        /// The cable, by its place.
        cable: usize,
        /// Where.
        end: String,
        /// The earlier cable.
        other: usize,
    },
    /// A switch with fewer ports than the cable asks for.
    #[error("cable {cable} ends at port {port} of {switch}, which has ports 0 to {last}")]
    NoPort {
        /// The cable, by its place.
        cable: usize,
        /// The switch's name.
        switch: String,
        /// The port.
        port: u16,
        /// Its last port.
        last: u16,
    },
    /// A switch without any port.
    #[error("switch {switch} has no ports: give it at least one")]
    NoPorts {
        /// The switch's name.
        switch: String,
    },
    /// A host without a cable.
    #[error("host {host} has no cable: connect it to a switch")]
    NoCable {
        /// The host's name.
        host: String,
    },
    /// A cable without a rate.
    #[error("cable {cable} has no rate: ps_per_byte must be at least 1")]
    NoRate {
        /// The cable, by its place.
        cable: usize,
    },
    /// A probability above one.
    #[error("cable {cable}: {per_million} of a million is more than all: at most 1000000")]
    TooOften {
        /// The cable, by its place.
        cable: usize,
        /// What was asked for.
        per_million: u32,
    },
    /// A stopped frame could not be held by what is called its buffer.
    #[error(
        "cable {cable} brings {needed_bytes} bytes to {switch} before its head is through: \
         buffer_bytes must be at least that, it is {buffer_bytes}"
    )]
    SmallBuffer {
        /// The cable, by its place.
        cable: usize,
        /// The switch's name.
        switch: String,
        /// Least size.
        needed_bytes: u64,
        /// Its size.
        buffer_bytes: u64,
    },
    /// Tables of ways for it would not fit into memory.
    #[error(
        "{switches} switches, {with_hosts} of them with hosts, are too many: use larger crossbars"
    )]
    TooLarge {
        /// All switches.
        switches: usize,
        /// Those with hosts.
        with_hosts: usize,
    },
    /// A shape that a generator cannot make.
    #[error("{shape}: {remedy}")]
    Shape {
        /// What was asked for.
        shape: &'static str,
        /// What is possible.
        remedy: &'static str,
    },
}

impl Topology {
    /// How many hosts.
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// Whether it can be built.
    pub fn check(&self) -> Result<(), TopologyError> {
        if self.hosts.is_empty() {
            return Err(TopologyError::NoHosts);
        }
        for switch in &self.switches {
            if switch.ports == 0 {
                let switch = switch.name.clone();
                return Err(TopologyError::NoPorts { switch });
            }
        }
        let mut taken = BTreeMap::new();
        for (at, cable) in self.cables.iter().enumerate() {
            self.check_cable(at, cable)?;
            for end in cable.ends {
                if let Some(other) = taken.insert(end, at) {
                    let end = self.name_of(end).to_string();
                    return Err(TopologyError::Taken {
                        cable: at,
                        end,
                        other,
                    });
                }
            }
        }
        for (at, host) in self.hosts.iter().enumerate() {
            if !taken.contains_key(&End::Host(at as u32)) {
                let host = host.name.clone();
                return Err(TopologyError::NoCable { host });
            }
        }
        self.check_size()
    }

    fn check_size(&self) -> Result<(), TopologyError> {
        let edges = self.cables.iter().filter_map(|cable| match cable.ends {
            [End::Host(_), End::Switch(at, _)] | [End::Switch(at, _), End::Host(_)] => Some(at),
            _ => None,
        });
        let with_hosts = edges.collect::<BTreeSet<_>>().len();
        let switches = self.switches.len();
        if with_hosts.saturating_mul(switches) > TABLE_MAX {
            return Err(TopologyError::TooLarge {
                switches,
                with_hosts,
            });
        }
        Ok(())
    }

    fn check_cable(&self, at: usize, cable: &Cable) -> Result<(), TopologyError> {
        if cable.ps_per_byte == 0 {
            return Err(TopologyError::NoRate { cable: at });
        }
        for per_million in [cable.loses_per_million, cable.damages_per_million] {
            if per_million > 1_000_000 {
                return Err(TopologyError::TooOften {
                    cable: at,
                    per_million,
                });
            }
        }
        for end in cable.ends {
            let End::Switch(switch, port) = end else {
                if self.name_of(end).0.is_none() {
                    let end = self.name_of(end).to_string();
                    return Err(TopologyError::NoEnd { cable: at, end });
                }
                continue;
            };
            let Some(switch) = self.switches.get(switch as usize) else {
                let end = self.name_of(end).to_string();
                return Err(TopologyError::NoEnd { cable: at, end });
            };
            if port >= switch.ports {
                return Err(TopologyError::NoPort {
                    cable: at,
                    switch: switch.name.clone(),
                    port,
                    last: switch.ports - 1,
                });
            }
            let before_through = cable.delay + switch.latency;
            let needed_bytes = before_through.as_ps().div_ceil(cable.ps_per_byte).max(1);
            if cable.buffer_bytes < needed_bytes {
                return Err(TopologyError::SmallBuffer {
                    cable: at,
                    switch: switch.name.clone(),
                    needed_bytes,
                    buffer_bytes: cable.buffer_bytes,
                });
            }
        }
        Ok(())
    }

    fn name_of(&self, end: End) -> EndName<'_> {
        let name = match end {
            End::Host(host) => self.hosts.get(host as usize).map(|host| &host.name),
            End::Switch(switch, _) => self.switches.get(switch as usize).map(|at| &at.name),
        };
        EndName(name.map(String::as_str), end)
    }
}

struct EndName<'a>(Option<&'a str>, End);

impl fmt::Display for EndName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Some(name), End::Host(_)) => write!(f, "host {name}"),
            (Some(name), End::Switch(_, port)) => write!(f, "port {port} of {name}"),
            (None, End::Host(host)) => write!(f, "host number {host}"),
            (None, End::Switch(switch, port)) => {
                write!(f, "port {port} of switch number {switch}")
            }
        }
    }
}

#[cfg(test)]
mod tests;
