//! Common topologies, of the paper's switches and cables unless changed afterwards.

use super::{
    Cable, End, Host, PAPER_PORTS, PAPER_SWITCH_LATENCY, Switch, Switching, Topology, TopologyError,
};

/// More than this is not built: tables of ways grow with hosts times switches.
const HOSTS_MAX: u64 = 1 << 12;

impl Topology {
    /// One crossbar with all hosts on it; with 8 hosts or fewer, the paper's.
    pub fn single_switch(hosts: u16) -> Self {
        let mut topology = Self::default();
        topology.add_switch("s0".into(), hosts.max(PAPER_PORTS));
        for host in 0..hosts {
            topology.add_host(End::Switch(0, host));
        }
        topology
    }

    /// A row of switches with one host at each end: so many hops, nothing else.
    pub fn line(switches: u16) -> Self {
        let mut topology = Self::default();
        for at in 0..switches.max(1) {
            topology.add_switch(format!("s{at}"), PAPER_PORTS);
        }
        let last = u32::from(switches.max(1)) - 1;
        topology.add_host(End::Switch(0, 0));
        topology.add_host(End::Switch(last, 1));
        for at in 0..last {
            topology.connect(End::Switch(at, 1), End::Switch(at + 1, 0));
        }
        topology
    }

    /// A folded Clos of two layers: each leaf has so many hosts, and so many cables to each spine.
    pub fn folded_clos(
        leaves: u16,
        hosts_per_leaf: u16,
        spines: u16,
        cables_each: u16,
    ) -> Result<Self, TopologyError> {
        let shape = |remedy| TopologyError::Shape {
            shape: "folded Clos",
            remedy,
        };
        if [leaves, hosts_per_leaf, spines, cables_each].contains(&0) {
            return Err(shape("every number must be at least 1"));
        }
        let up = u32::from(spines) * u32::from(cables_each);
        let leaf_ports = u16::try_from(u32::from(hosts_per_leaf) + up)
            .map_err(|_| shape("a leaf has at most 65535 ports"))?;
        let spine_ports = leaves
            .checked_mul(cables_each)
            .ok_or(shape("a spine has at most 65535 ports"))?;
        let mut topology = Self::default();
        for leaf in 0..leaves {
            topology.add_switch(format!("leaf{leaf}"), leaf_ports.max(PAPER_PORTS));
        }
        for spine in 0..spines {
            topology.add_switch(format!("spine{spine}"), spine_ports.max(PAPER_PORTS));
        }
        for leaf in 0..leaves {
            for host in 0..hosts_per_leaf {
                topology.add_host(End::Switch(leaf.into(), host));
            }
            for spine in 0..spines {
                for cable in 0..cables_each {
                    let up = hosts_per_leaf + spine * cables_each + cable;
                    topology.connect(
                        End::Switch(leaf.into(), up),
                        End::Switch(
                            u32::from(leaves) + u32::from(spine),
                            leaf * cables_each + cable,
                        ),
                    );
                }
            }
        }
        Ok(topology)
    }

    /// A fat tree: `arity` to the power of `levels` hosts, on `levels` layers of crossbars with `arity` ports
    /// down and as many up. With arity 4 these are 8 x 8: 3 levels have 64 hosts, 5 have 1,024.
    pub fn fat_tree(arity: u16, levels: u32) -> Result<Self, TopologyError> {
        let hosts = u64::from(arity).checked_pow(levels);
        let Some(hosts) = hosts.filter(|&hosts| arity > 0 && levels > 0 && hosts <= HOSTS_MAX)
        else {
            return Err(TopologyError::Shape {
                shape: "fat tree",
                remedy: "arity and levels must be at least 1, and the hosts at most 4096",
            });
        };
        let arity = u32::from(arity);
        let per_level = hosts as u32 / arity;
        let ports = (arity as u16).saturating_mul(2);
        let mut topology = Self::default();
        for level in 0..levels {
            for at in 0..per_level {
                topology.add_switch(format!("s{level}.{at}"), ports);
            }
        }
        for host in 0..hosts as u32 {
            topology.add_host(End::Switch(host / arity, (host % arity) as u16));
        }
        // Switches of neighbouring levels are connected if their numbers, in digits of base `arity`, differ
        // at most in the digit of that level.
        for level in 1..levels {
            let digit = arity.pow(level - 1);
            for below in 0..per_level {
                let own = below / digit % arity;
                for choice in 0..arity {
                    let above = below - own * digit + choice * digit;
                    topology.connect(
                        End::Switch((level - 1) * per_level + below, (arity + choice) as u16),
                        End::Switch(level * per_level + above, own as u16),
                    );
                }
            }
        }
        Ok(topology)
    }

    /// The same with another way of passing frames on, in every switch.
    #[must_use]
    pub fn switching(mut self, switching: Switching) -> Self {
        for switch in &mut self.switches {
            switch.switching = switching;
        }
        self
    }

    /// The same with other buffers at every input, in bytes.
    #[must_use]
    pub fn buffers(mut self, buffer_bytes: u64) -> Self {
        for cable in &mut self.cables {
            cable.buffer_bytes = buffer_bytes;
        }
        self
    }

    pub(crate) fn add_switch(&mut self, name: String, ports: u16) {
        self.switches.push(Switch {
            name,
            ports,
            latency: PAPER_SWITCH_LATENCY,
            switching: Switching::Wormhole,
        });
    }

    pub(crate) fn add_host(&mut self, at: End) {
        let host = self.hosts.len() as u32;
        self.hosts.push(Host {
            name: format!("h{host}"),
        });
        self.connect(End::Host(host), at);
    }

    pub(crate) fn connect(&mut self, one: End, other: End) {
        self.cables.push(Cable::paper(one, other));
    }
}
