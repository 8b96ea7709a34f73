//! Common topologies, of the paper's switches and cables unless changed afterwards.

use crate::time::Span;

use super::{
    Cable, End, Host, PAPER_PORTS, PAPER_SWITCH_LATENCY, Switch, Switching, Topology, TopologyError,
};

/// More than this is not built: tables of ways grow with hosts times switches.
const HOSTS_MAX: u64 = 1 << 12;

/// How [`Topology::subclusters`] is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subclusters {
    /// Hosts.
    pub hosts: u16,
    /// Switches in all.
    pub switches: u16,
    /// Ports of each.
    pub ports: u16,
    /// Subclusters.
    pub clusters: u16,
    /// Those of the switches that join them.
    pub joining: u16,
    /// Cables to these, spread over the subclusters.
    pub joining_cables: u16,
}

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

    /// A fat tree: `arity` to the power of `levels` hosts, on `levels` layers of crossbars with
    /// `arity` ports down and as many up. With arity 4 these are 8 x 8: 3 levels have 64 hosts, 5
    /// have 1,024.
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
        // Switches of neighbouring levels are connected if their numbers, in digits of base
        // `arity`, differ at most in the digit of that level.
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

    /// Subclusters of two layers each, joined by further switches, all of so many ports: half of a
    /// subcluster's switches, rounded up, have the hosts, and every two of these have one above
    /// them in common if there are ports enough.
    pub fn subclusters(shape: &Subclusters) -> Result<Self, TopologyError> {
        let wrong = |remedy| TopologyError::Shape {
            shape: "subclusters",
            remedy,
        };
        let Subclusters {
            hosts,
            switches,
            ports,
            clusters,
            joining,
            joining_cables,
        } = *shape;
        let inside = switches.checked_sub(joining).filter(|_| joining > 0);
        let inside = inside.filter(|&inside| clusters > 0 && inside >= 2 * clusters);
        let inside = inside.ok_or(wrong("each subcluster has at least two switches"))?;
        if joining_cables / clusters < joining {
            return Err(wrong("each subcluster has a cable to every joining switch"));
        }
        let mut topology = Self::default();
        let mut used = vec![0; usize::from(switches)];
        let mut next_port = |switch: u32| {
            let port = used.get_mut(switch as usize)?;
            *port += 1;
            (*port <= ports).then(|| End::Switch(switch, *port - 1))
        };
        let full = wrong("a switch has fewer ports than cables: take more switches or ports");
        // Of each subcluster its first switch, how many of its switches have hosts, and how many
        // are above them.
        let mut parts = Vec::new();
        for cluster in 0..clusters {
            let size = inside / clusters + u16::from(cluster < inside % clusters);
            let first = topology.switches.len() as u32;
            for at in 0..size {
                topology.add_switch(format!("c{cluster}.{at}"), ports);
            }
            parts.push((first, size.div_ceil(2), size / 2));
        }
        let first_joining = topology.switches.len() as u32;
        for at in 0..joining {
            topology.add_switch(format!("j{at}"), ports);
        }
        let edges: Vec<u32> = parts
            .iter()
            .flat_map(|&(first, edges, _)| first..first + u32::from(edges))
            .collect();
        for host in 0..hosts {
            let edge = edges[usize::from(host) * edges.len() / usize::from(hosts.max(1))];
            topology.add_host(next_port(edge).ok_or(full.clone())?);
        }
        let per_edge = hosts.div_ceil(edges.len().try_into().unwrap_or(u16::MAX));
        let up = ports.saturating_sub(per_edge);
        for &(first, edges, above) in &parts {
            for edge in 0..u32::from(edges) {
                for cable in 0..u32::from(up) {
                    // Triangular numbers: the differences of two edges' cables are many.
                    let step = edge + cable * (cable + 1) / 2;
                    let to = first + u32::from(edges) + step % u32::from(above);
                    let ends = (next_port(first + edge), next_port(to));
                    let (Some(one), Some(other)) = ends else {
                        return Err(full);
                    };
                    topology.connect(one, other);
                }
            }
        }
        for cable in 0..u32::from(joining_cables) {
            let (first, edges, above) = parts[cable as usize % parts.len()];
            let turn = cable / u32::from(clusters);
            let from = first + u32::from(edges) + turn % u32::from(above);
            let to = first_joining + turn % u32::from(joining);
            let (Some(one), Some(other)) = (next_port(from), next_port(to)) else {
                return Err(full);
            };
            topology.connect(one, other);
        }
        Ok(topology)
    }

    /// The same with that time of a byte on every cable, and that of a head in every switch.
    #[must_use]
    pub fn rates(mut self, ps_per_byte: u64, latency: Span) -> Self {
        for cable in &mut self.cables {
            cable.ps_per_byte = ps_per_byte;
        }
        for switch in &mut self.switches {
            switch.latency = latency;
        }
        self
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
