//! The paper's cluster, with a node of Active Messages on each host that has a program.

use std::cell::RefCell;
use std::rc::Rc;

use hamlyn::{Manager, Strategy, Wait};
use hamlyn_am::{Bundle, Endpoint, Error, Node, NodeOptions, Statistics, Tag, Translation};

use crate::host::SimHost;
use crate::machine::Machine;
use crate::reproduce::measure::Failure;
use crate::reproduce::primitive::{PartOf, Primitive, ProgramEnd};
use crate::time::Time;
use crate::world;

/// The tag of every endpoint here.
const TAG: Tag = Tag::new(7);
/// Words of a short message (`V 5.1`).
const WORDS: [u32; 4] = [1, 2, 3, 4];
/// The handler of requests.
const REQUEST: u8 = 1;
/// The handler of replies.
const REPLY: u8 = 2;
/// The handler of requests with data.
const MEDIUM: u8 = 3;

/// A cluster: its machine, and the options of each node.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The machine.
    pub machine: Machine,
    /// Options of each node.
    pub options: NodeOptions,
    /// Programs are on neighbouring hosts; otherwise they are far apart.
    pub are_neighbours: bool,
}

/// A program's end.
pub(super) struct Member {
    pub(super) node: Node<SimHost>,
    pub(super) bundle: Bundle<SimHost>,
}

/// A program of an experiment.
pub(super) type Part<'a> = PartOf<'a, Member>;

impl Cluster {
    /// The paper's: its machine, and its setting of the layer.
    pub fn paper() -> Self {
        Self {
            machine: Machine::named("now-virtual-networks").expect("a file that is in the program"),
            options: NodeOptions::paper(),
            are_neighbours: false,
        }
    }

    /// Runs programs to their ends, each on a host of its own, whose board receives and sends.
    pub(super) fn run(&self, parts: Vec<Part<'_>>) -> Result<(), Failure> {
        let open = |manager: Manager<SimHost>| {
            let node = Node::new(manager, self.options).expect("options that can be");
            let bundle = node.bundle().expect("a first bundle");
            Member { node, bundle }
        };
        let primitive = Primitive {
            are_neighbours: self.are_neighbours,
            lets_go_at_once: true,
            ..Primitive::new(&self.machine, Strategy::Np)
        };
        primitive.run_ends(open, parts)
    }
}

impl ProgramEnd for Member {
    fn flush(&self) {
        let _ = self.node.flush(Wait::Forever);
    }
}

impl Member {
    /// An endpoint that answers each request, published under an item: short requests by their
    /// words, mediums by a short reply.
    pub(super) fn server(&self, item: &str) -> Result<Endpoint<SimHost>, Error> {
        let mut endpoint = self.bundle.endpoint()?;
        endpoint.set_tag(TAG)?;
        endpoint.on_short(REQUEST, |call, words| call.reply(REPLY, words))?;
        endpoint.on_medium(MEDIUM, |call, _, words| call.reply(REPLY, words))?;
        self.node.publish(item, &endpoint.name()?)?;
        Ok(endpoint)
    }

    /// A client of the endpoint that `server` publishes under an item.
    pub(super) fn client(&self, server: &str, item: &str) -> Result<Client<'_>, Error> {
        let mut endpoint = self.bundle.endpoint()?;
        endpoint.set_tag(TAG)?;
        let replies = Rc::new(RefCell::new(Vec::new()));
        let log = Rc::clone(&replies);
        endpoint.on_short(REPLY, move |_, _| {
            log.borrow_mut().push(world::now());
            Ok(())
        })?;
        let name = self.node.look_up(server, item, Wait::Forever)?;
        let to = endpoint.map(&name, TAG, Wait::Forever)?;
        Ok(Client {
            member: self,
            endpoint,
            to,
            replies,
        })
    }

    /// The counts of its node.
    pub(super) fn statistics(&self) -> Statistics {
        self.node.statistics().unwrap_or_default()
    }
}

/// An endpoint that sends requests to another one.
pub(super) struct Client<'a> {
    member: &'a Member,
    endpoint: Endpoint<SimHost>,
    to: Translation,
    /// The times at which replies came.
    replies: Rc<RefCell<Vec<Time>>>,
}

impl Client<'_> {
    /// Sends a request: a short message if there are no data.
    pub(super) fn request(&self, data: &[u8]) -> Result<(), Error> {
        match data {
            [] => (self.endpoint).request(&self.to, REQUEST, &WORDS, Wait::Forever),
            _ => (self.endpoint).request_medium(&self.to, MEDIUM, data, &WORDS, Wait::Forever),
        }
    }

    pub(super) fn outstanding(&self) -> Result<u32, Error> {
        self.endpoint.outstanding()
    }

    /// The number of replies that came.
    pub(super) fn replies(&self) -> usize {
        self.replies.borrow().len()
    }

    /// Waits until so many replies have come.
    pub(super) fn await_replies(&self, count: usize) -> Result<(), Error> {
        while self.replies() < count {
            self.member.bundle.serve(Wait::Forever)?;
        }
        Ok(())
    }

    /// The times of the replies that came between these, the second left out.
    pub(super) fn replies_between(&self, from: Time, until: Time) -> Vec<Time> {
        let replies = self.replies.borrow();
        let replies = replies.iter().copied();
        replies
            .filter(|&time| time >= from && time < until)
            .collect()
    }
}
