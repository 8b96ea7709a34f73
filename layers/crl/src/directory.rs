//! The directory of a region, at its home: who has a copy, and who waits for one.

use std::collections::{BTreeMap, VecDeque};

use crate::context::Mode;
use crate::id::NodeSet;

/// An exclusive copy, or one that is on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Holder {
    pub(crate) node: u32,
    pub(crate) number: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// The home's bytes are valid, and these nodes have copies of these numbers.
    Home(BTreeMap<u32, u32>),
    /// The home is to write, and waits for acknowledgements.
    Collecting,
    /// A node has the only valid copy.
    Held(Holder),
    /// It is to become a shared copy.
    Fetching(Holder),
    /// It is to go to another node.
    Passing { from: Holder, to: Holder },
    /// It is to come home, as the home is to write or that node, which it was to go to, is lost.
    Recalling { from: Holder, lost: Option<u32> },
    /// It was lost with that node.
    Lost(u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) node: u32,
    pub(crate) mode: Mode,
    pub(crate) number: u32,
    /// The number of the shared copy that the node has.
    pub(crate) held: u32,
}

/// The region is to be destroyed.
#[derive(Debug)]
pub(crate) struct Destroying {
    /// Nodes that have not said yet that it is not mapped there.
    pub(crate) awaited: NodeSet,
    /// The nodes that want it destroyed, and the numbers of their requests.
    pub(crate) askers: Vec<(u32, u32)>,
    /// A node that has it mapped.
    pub(crate) user: Option<u32>,
}

#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) state: State,
    pub(crate) queue: VecDeque<Request>,
    /// Nodes that have mapped it, and may have it cached.
    pub(crate) known: NodeSet,
    pub(crate) destroying: Option<Destroying>,
}

impl Directory {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Home(BTreeMap::new()),
            queue: VecDeque::new(),
            known: NodeSet::default(),
            destroying: None,
        }
    }

    /// A node has one request at a time, so its last one counts.
    pub(crate) fn enqueue(&mut self, request: Request) {
        self.queue.retain(|one| one.node != request.node);
        self.queue.push_back(request);
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn holder(&self) -> Option<Holder> {
        match self.state {
            State::Held(from)
            | State::Fetching(from)
            | State::Passing { from, .. }
            | State::Recalling { from, .. } => Some(from),
            State::Home(_) | State::Collecting | State::Lost(_) => None,
        }
    }
}
