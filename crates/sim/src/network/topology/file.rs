//! Topologies from a TOML file.
//!
//! ```toml
//! [defaults]                # all of it may be left out: then the paper's network (Hamlyn 4)
//! ps_per_byte = 12500
//! delay_ns = 0
//! buffer_bytes = 256
//! ports = 8
//! latency_ns = 500
//! switching = "wormhole"    # or "store_and_forward"
//!
//! [[switch]]
//! name = "s0"               # ports, latency_ns, switching as above
//!
//! [[host]]
//! name = "alice"
//!
//! [[cable]]
//! from = "alice"            # a host, or "switch:port"
//! to = "s0:0"               # ps_per_byte, delay_ns, buffer_bytes as above
//! loses_per_million = 0
//! damages_per_million = 0
//! ```
//!
//! Instead of switches, hosts and cables one of the generators can be named: `[fat_tree]` with `arity` and `levels`,
//! `[single_switch]` with `hosts`, or `[folded_clos]` with `leaves`, `hosts_per_leaf`, `spines` and `cables_each`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    Cable, DEFAULT_BUFFER_BYTES, End, Host, PAPER_PORTS, PAPER_PS_PER_BYTE, PAPER_SWITCH_LATENCY,
    Switch, Switching, Topology, TopologyError,
};
use crate::time::Span;

/// Why a file is not a topology.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Not TOML, or a field that is unknown, missing or of the wrong kind; the text says which and where.
    #[error("not a topology file: {0}")]
    Syntax(String),
    /// Two things of one name.
    #[error("the name {name} is given twice: names of hosts and switches must differ")]
    TwiceNamed {
        /// The name.
        name: String,
    },
    /// An end of a cable that names nothing.
    #[error(
        "cable {cable} names {end}, which is no host and no switch: add a [[host]] or [[switch]] of this name"
    )]
    NoSuchEnd {
        /// The cable, by its place.
        cable: usize,
        /// The end as written.
        end: String,
    },
    /// A switch without a port, or something that is not a port.
    #[error(
        "cable {cable} names {end}: a switch's end is written \"name:port\", with the port as a number from 0"
    )]
    BadPort {
        /// The cable, by its place.
        cable: usize,
        /// The end as written.
        end: String,
    },
    /// More than one description.
    #[error("a file has either switches, hosts and cables or one generator: remove {what}")]
    Both {
        /// What is one too many.
        what: &'static str,
    },
    /// Written well, and still no network.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    host: Vec<HostEntry>,
    #[serde(default)]
    switch: Vec<SwitchEntry>,
    #[serde(default)]
    cable: Vec<CableEntry>,
    fat_tree: Option<FatTree>,
    single_switch: Option<SingleSwitch>,
    folded_clos: Option<FoldedClos>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Defaults {
    ps_per_byte: u64,
    delay_ns: u64,
    buffer_bytes: u64,
    ports: u16,
    latency_ns: u64,
    switching: Switching,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            ps_per_byte: PAPER_PS_PER_BYTE,
            delay_ns: 0,
            buffer_bytes: DEFAULT_BUFFER_BYTES,
            ports: PAPER_PORTS,
            latency_ns: PAPER_SWITCH_LATENCY.as_ns(),
            switching: Switching::Wormhole,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostEntry {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchEntry {
    name: String,
    ports: Option<u16>,
    latency_ns: Option<u64>,
    switching: Option<Switching>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CableEntry {
    from: String,
    to: String,
    ps_per_byte: Option<u64>,
    delay_ns: Option<u64>,
    buffer_bytes: Option<u64>,
    #[serde(default)]
    loses_per_million: u32,
    #[serde(default)]
    damages_per_million: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FatTree {
    arity: u16,
    levels: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SingleSwitch {
    hosts: u16,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FoldedClos {
    leaves: u16,
    hosts_per_leaf: u16,
    spines: u16,
    cables_each: u16,
}

impl Topology {
    /// Reads a topology, and checks it.
    pub fn from_toml(text: &str) -> Result<Self, FileError> {
        let file: File =
            toml::from_str(text).map_err(|error| FileError::Syntax(error.to_string()))?;
        let topology = match file.generated()? {
            Some(topology) => topology,
            None => file.listed()?,
        };
        topology.check()?;
        Ok(topology)
    }
}

impl File {
    fn generated(&self) -> Result<Option<Topology>, FileError> {
        let mut all = Vec::new();
        if let Some(FatTree { arity, levels }) = self.fat_tree {
            all.push(("[fat_tree]", Topology::fat_tree(arity, levels)?));
        }
        if let Some(SingleSwitch { hosts }) = self.single_switch {
            all.push(("[single_switch]", Topology::single_switch(hosts)));
        }
        if let Some(clos) = &self.folded_clos {
            let topology = Topology::folded_clos(
                clos.leaves,
                clos.hosts_per_leaf,
                clos.spines,
                clos.cables_each,
            )?;
            all.push(("[folded_clos]", topology));
        }
        let is_listed = !(self.host.is_empty() && self.switch.is_empty() && self.cable.is_empty());
        match all.get(1).or(all.first().filter(|_| is_listed)) {
            Some(&(what, _)) => Err(FileError::Both { what }),
            None => Ok(all.pop().map(|(_, topology)| self.changed(topology))),
        }
    }

    /// What a generator made, with the file's defaults.
    fn changed(&self, mut topology: Topology) -> Topology {
        let defaults = &self.defaults;
        for switch in &mut topology.switches {
            switch.latency = Span::from_ns(defaults.latency_ns);
            switch.switching = defaults.switching;
        }
        for cable in &mut topology.cables {
            cable.ps_per_byte = defaults.ps_per_byte;
            cable.delay = Span::from_ns(defaults.delay_ns);
            cable.buffer_bytes = defaults.buffer_bytes;
        }
        topology
    }

    fn listed(&self) -> Result<Topology, FileError> {
        let defaults = &self.defaults;
        let mut names = BTreeMap::new();
        let mut topology = Topology::default();
        for (at, entry) in self.host.iter().enumerate() {
            let name = entry.name.clone();
            if names.insert(name.clone(), End::Host(at as u32)).is_some() {
                return Err(FileError::TwiceNamed { name });
            }
            topology.hosts.push(Host { name });
        }
        for (at, entry) in self.switch.iter().enumerate() {
            let name = entry.name.clone();
            let end = End::Switch(at as u32, 0);
            if names.insert(name.clone(), end).is_some() {
                return Err(FileError::TwiceNamed { name });
            }
            topology.switches.push(Switch {
                name,
                ports: entry.ports.unwrap_or(defaults.ports),
                latency: Span::from_ns(entry.latency_ns.unwrap_or(defaults.latency_ns)),
                switching: entry.switching.unwrap_or(defaults.switching),
            });
        }
        for (at, entry) in self.cable.iter().enumerate() {
            let ends = [find(&names, at, &entry.from)?, find(&names, at, &entry.to)?];
            topology.cables.push(Cable {
                ends,
                ps_per_byte: entry.ps_per_byte.unwrap_or(defaults.ps_per_byte),
                delay: Span::from_ns(entry.delay_ns.unwrap_or(defaults.delay_ns)),
                buffer_bytes: entry.buffer_bytes.unwrap_or(defaults.buffer_bytes),
                loses_per_million: entry.loses_per_million,
                damages_per_million: entry.damages_per_million,
            });
        }
        Ok(topology)
    }
}

fn find(names: &BTreeMap<String, End>, cable: usize, end: &str) -> Result<End, FileError> {
    let named = || (cable, end.to_owned());
    let (name, port) = match end.rsplit_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (end, None),
    };
    match (names.get(name), port) {
        (None, _) => {
            let (cable, end) = named();
            Err(FileError::NoSuchEnd { cable, end })
        }
        (Some(&host @ End::Host(_)), None) => Ok(host),
        (Some(&End::Switch(switch, _)), Some(port)) if port.parse::<u16>().is_ok() => {
            Ok(End::Switch(switch, port.parse().unwrap_or_default()))
        }
        _ => {
            let (cable, end) = named();
            Err(FileError::BadPort { cable, end })
        }
    }
}
