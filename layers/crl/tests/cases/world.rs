//! The nodes of a program.

use hamlyn::Wait;
use hamlyn_crl::{Crl, CrlOptions, RegionId, Regions, UdmCourier};
use hamlyn_udm::{Group, GroupOptions};

use crate::{Host, Place};

pub(crate) type Node = Crl<UdmCourier<Host>>;

/// Longer than any step of a case.
pub(crate) const LONG: Wait = Wait::millis(60_000);

pub(crate) struct World {
    place: Place,
}

impl World {
    pub(crate) fn new(place: Place) -> Self {
        Self { place }
    }

    /// Runs nodes, which end as they like.
    pub(crate) fn run_with(
        &self,
        nodes: usize,
        options: &(dyn Fn() -> CrlOptions + Sync),
        program: &(dyn Fn(&Node) + Sync),
    ) {
        self.place.run(nodes, &|manager, number, names| {
            let group = GroupOptions {
                name: "cases".into(),
                me: number as u32,
                addresses: names.to_vec(),
            };
            let group = Group::new(manager, group).unwrap();
            program(&Crl::join(&group, "main", options(), LONG).unwrap());
        });
    }

    /// Runs nodes that end together.
    pub(crate) fn run(&self, nodes: usize, program: &(dyn Fn(&Node) + Sync)) {
        self.run_with(nodes, &CrlOptions::default, &|crl| {
            program(crl);
            assert!(crl.finish(LONG).unwrap());
        });
    }
}

/// Each node creates a region of so many bytes: all of them, by node.
pub(crate) fn region_of_each(crl: &Node, bytes: usize) -> Vec<RegionId> {
    let own = crl.create(bytes).unwrap();
    let mut regions = Vec::new();
    for node in 0..crl.nodes() {
        let mut number = own.to_u64().to_le_bytes();
        if node == crl.me() {
            crl.broadcast(&number).unwrap();
        } else {
            crl.receive_broadcast(&mut number).unwrap();
        }
        regions.push(RegionId::from_u64(u64::from_le_bytes(number)));
    }
    regions
}
