//! A program of a case: a node with a bundle, among others that do the same.

use std::sync::atomic::{AtomicUsize, Ordering};

use hamlyn::Wait;
use hamlyn_am::{Bundle, Endpoint, Error, Name, Node, NodeOptions, Tag, Translation};

use crate::{Host, Place};

/// Longer than anything takes.
pub(crate) const LONG: Wait = Wait::millis(20_000);
/// A look.
const SHORT: Wait = Wait::millis(5);
/// Looks in vain until a program is taken to be stuck.
const LOOKS_MAX: usize = 6_000;

pub(crate) type Role<'a> = dyn Fn(&Player<'_>) -> Result<(), Error> + Sync + 'a;

/// The place of a case, and options of its nodes.
#[derive(Clone, Copy)]
pub(crate) struct World {
    pub(crate) place: Place,
    pub(crate) options: NodeOptions,
}

impl World {
    pub(crate) fn new(place: Place) -> Self {
        Self {
            place,
            options: NodeOptions::default(),
        }
    }

    /// Runs so many programs.
    pub(crate) fn run(self, count: usize, role: &Role<'_>) {
        let finished = AtomicUsize::new(0);
        self.place.run(count, &|manager, number, names| {
            let node = Node::new(manager, self.options).unwrap();
            let player = Player {
                number,
                bundle: node.bundle().unwrap(),
                node,
                names,
                finished: &finished,
            };
            role(&player).unwrap();
        });
    }
}

/// A program of a case.
pub(crate) struct Player<'a> {
    pub(crate) number: usize,
    pub(crate) node: Node<Host>,
    pub(crate) bundle: Bundle<Host>,
    /// The names of all.
    names: &'a [String],
    finished: &'a AtomicUsize,
}

impl Player<'_> {
    /// An endpoint with that tag, published under an item.
    pub(crate) fn endpoint(&self, item: &str, tag: Tag) -> Endpoint<Host> {
        let mut endpoint = self.bundle.endpoint().unwrap();
        endpoint.set_tag(tag).unwrap();
        self.node.publish(item, &endpoint.name().unwrap()).unwrap();
        endpoint
    }

    /// The name that another one publishes.
    pub(crate) fn look_up(&self, number: usize, item: &str) -> Name {
        self.node.look_up(&self.names[number], item, LONG).unwrap()
    }

    /// A translation to what another one publishes.
    pub(crate) fn map(
        &self,
        from: &Endpoint<Host>,
        number: usize,
        item: &str,
        tag: Tag,
    ) -> Translation {
        from.map(&self.look_up(number, item), tag, LONG).unwrap()
    }

    /// Serves until that holds, which messages for the bundle make so: each wait is long, so that
    /// one which is not woken is found.
    pub(crate) fn serve_until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        while !holds() {
            let served = self.bundle.serve(LONG).unwrap();
            let statistics = self.node.statistics();
            assert!(served > 0 || holds(), "{what} did not come: {statistics:?}");
            assert!(served > 0, "{what} came and woke nobody: {statistics:?}");
        }
    }

    /// The same, if something else makes it so.
    pub(crate) fn look_until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let mut looks = 0;
        while !holds() {
            match self.bundle.serve(SHORT).unwrap() {
                0 => looks += 1,
                _ => looks = 0,
            }
            let statistics = self.node.statistics();
            assert!(looks < LOOKS_MAX, "{what} did not come: {statistics:?}");
        }
    }

    /// A node with other options, without a name.
    pub(crate) fn another(&self, options: NodeOptions) -> Result<Node<Host>, Error> {
        Node::new(crate::open_unnamed(), options)
    }

    /// Has come to its end, and its node may go before others have.
    pub(crate) fn leave(&self) {
        self.finished.fetch_add(1, Ordering::SeqCst);
    }

    /// Has come to its end, and serves until all others have. Its endpoints live until then.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        self.finish_with(|| ())
    }

    /// The same, with something to do in between.
    pub(crate) fn finish_with(&self, mut act: impl FnMut()) -> Result<(), Error> {
        self.finished.fetch_add(1, Ordering::SeqCst);
        let all = || {
            act();
            self.finished.load(Ordering::SeqCst) >= self.names.len()
        };
        self.look_until("the end of all", all);
        assert!(self.node.flush(LONG)?);
        Ok(())
    }
}
