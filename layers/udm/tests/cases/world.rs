//! The nodes of a group, each a program.

use hamlyn::Wait;
use hamlyn_udm::{Group, GroupOptions, Udm, UdmOptions};

use crate::{Host, Place};

pub(crate) type Node<S> = Udm<S, Host>;

/// Longer than any step of a case.
pub(crate) const LONG: Wait = Wait::millis(60_000);

pub(crate) struct World {
    pub(crate) place: Place,
}

impl World {
    pub(crate) fn new(place: Place) -> Self {
        Self { place }
    }

    /// Runs the nodes of a group.
    pub(crate) fn run_group(&self, nodes: usize, program: impl Fn(Group<Host>) + Sync) {
        self.place.run(nodes, &|manager, number, names| {
            let options = GroupOptions {
                name: "cases".into(),
                me: number as u32,
                addresses: names.to_vec(),
            };
            program(Group::new(manager, options).unwrap());
        });
    }

    /// Runs nodes with one end point each. They end together.
    pub(crate) fn run<S: 'static>(
        &self,
        nodes: usize,
        options: UdmOptions,
        state: impl Fn() -> S + Sync,
        program: impl Fn(&mut Node<S>) + Sync,
    ) {
        self.run_group(nodes, |group| {
            let mut udm = Udm::open(&group, "main", options, state(), LONG).unwrap();
            program(&mut udm);
            udm.barrier(LONG).unwrap();
            assert!(udm.flush(LONG).unwrap());
        });
    }
}

/// Sets a handler that adds so much for each of its messages.
pub(crate) fn adds(udm: &mut Node<u32>, handler: u16, amount: u32) {
    udm.on(handler, move |arrival| {
        let mut call = arrival.extract();
        *call.state() += amount;
        call
    })
    .unwrap();
}

/// Runs handlers until the state says that it is enough.
pub(crate) fn serve_until<S>(udm: &mut Node<S>, is_enough: impl Fn(&S) -> bool) {
    while !is_enough(udm.state()) {
        let ran = udm.serve(LONG).unwrap();
        assert!(
            ran > 0 || is_enough(udm.state()) || !lost(udm),
            "a node was lost"
        );
    }
}

fn lost<S>(udm: &Node<S>) -> bool {
    (0..udm.nodes()).any(|node| udm.lost(node).is_some())
}
