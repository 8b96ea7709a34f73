//! The nodes of a program.

use std::time::Duration;

use hamlyn::{Manager, Wait};
use hamlyn_am::{Node as AmNode, NodeOptions};
use hamlyn_crl::{AmCourier, Courier, Crl, CrlOptions, RegionId, Regions, UdmCourier};
use hamlyn_udm::{Group, GroupOptions};

use crate::{Host, Place};

pub(crate) type Node = Crl<Box<dyn Courier>>;

/// Longer than any step of a case.
pub(crate) const LONG: Wait = Wait::millis(60_000);

/// The messages of a world.
#[derive(Clone, Copy)]
enum Messages {
    Udm,
    Am(NodeOptions),
}

pub(crate) struct World {
    pub(crate) place: Place,
    messages: Messages,
}

/// A kind of world, by the messages that it has.
macro_rules! world {
    ($over:ident, $messages:expr) => {
        pub(crate) struct $over;

        impl $over {
            #[allow(clippy::new_ret_no_self, reason = "a kind of world")]
            pub(crate) fn new(place: Place) -> World {
                let messages = $messages;
                World { place, messages }
            }
        }
    };
}

world!(OverUdm, Messages::Udm);
world!(OverAm, Messages::Am(NodeOptions::default()));
world!(OverNarrowAm, Messages::Am(narrow()));

/// One request at a time, queues of few messages, and a frame for one of two endpoints.
pub(crate) fn narrow() -> NodeOptions {
    NodeOptions {
        credits: 1,
        frames: 1,
        queue_bytes: 4096,
        medium_bytes_max: 1000,
        visit: 1,
        congestion: Duration::from_millis(2),
        ..NodeOptions::paper()
    }
}

/// The description of a program.
pub(crate) fn program_of(me: usize, names: &[String]) -> GroupOptions {
    GroupOptions {
        name: "cases".into(),
        me: me as u32,
        addresses: names.to_vec(),
    }
}

impl Messages {
    fn courier(self, manager: Manager<Host>, program: GroupOptions) -> Box<dyn Courier> {
        match self {
            Self::Udm => {
                let group = Group::new(manager, program).unwrap();
                Box::new(UdmCourier::open(&group, "main", LONG).unwrap())
            }
            Self::Am(options) => {
                let node = AmNode::new(manager, options).unwrap();
                Box::new(AmCourier::open(&node, &program, "main", LONG).unwrap())
            }
        }
    }
}

impl World {
    /// Pieces of a message of so many bytes, at most: packets of the simulated network have a
    /// thousand besides all headers.
    pub(crate) fn pieces_max(&self, bytes: usize) -> usize {
        let piece_bytes = match self.messages {
            Messages::Udm => 1_000,
            Messages::Am(options) => options.medium_bytes_max.min(1_000) as usize,
        };
        bytes.div_ceil(piece_bytes)
    }

    /// Runs couriers alone.
    pub(crate) fn run_couriers(&self, nodes: usize, program: &(dyn Fn(Box<dyn Courier>) + Sync)) {
        self.place.run(nodes, &|manager, number, names| {
            program(self.messages.courier(manager, program_of(number, names)));
        });
    }

    /// Runs nodes, which end as they like.
    pub(crate) fn run_with(
        &self,
        nodes: usize,
        options: &(dyn Fn() -> CrlOptions + Sync),
        program: &(dyn Fn(&Node) + Sync),
    ) {
        self.place.run(nodes, &|manager, number, names| {
            let courier = self.messages.courier(manager, program_of(number, names));
            program(&Crl::open(courier, options()).unwrap());
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
