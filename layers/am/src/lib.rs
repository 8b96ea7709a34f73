//! Active Messages II on virtual networks, over Hamlyn (`V 3.1`, `V 3.2`; decision 54).
//!
//! A [`Node`] is one interface. It has [bundles](Bundle) of [endpoints](Endpoint). An endpoint has
//! a [`Name`], which others map; a [`Tag`], which they must know; and handlers, numbered from 1 to
//! 255. A *request* names a handler, which runs at the receiver when its bundle is polled, and may
//! answer with one *reply*, which runs a handler at the requester.
//!
//! ```
//! use hamlyn::Wait;
//! use hamlyn::host::process::Options;
//! use hamlyn_am::{Node, NodeOptions, Tag};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = Node::open(Options::default(), NodeOptions::default())?;
//! let bundle = node.bundle()?;
//! // Usually each is in a process of its own, and the name travels: `Node::publish`.
//! let mut server = bundle.endpoint()?;
//! server.set_tag(Tag::new(7))?;
//! server.on_short(3, |call, arguments| call.reply(4, &[arguments[0] + 1]))?;
//!
//! let mut client = bundle.endpoint()?;
//! let answer = std::rc::Rc::new(std::cell::Cell::new(0));
//! let seen = answer.clone();
//! client.on_short(4, move |_, arguments| {
//!     seen.set(arguments[0]);
//!     Ok(())
//! })?;
//! let to = client.map(&server.name()?, Tag::new(7), Wait::millis(1000))?;
//! client.request(&to, 3, &[41], Wait::millis(1000))?;
//! while answer.get() == 0 {
//!     bundle.serve(Wait::millis(1000))?;
//! }
//! assert_eq!(answer.get(), 42);
//! # Ok(())
//! # }
//! ```
//!
//! **Each request that is accepted ends once**: by a reply, by an empty reply if its handler sends
//! none, or by its return to the sender ([`Endpoint::on_returned`]) with the [`Reason`], the
//! arguments, and the data if they were copied ([`Endpoint::transfer`]). A call that fails has sent
//! no message; a transfer that has waited in vain may have written some of its data.
//!
//! **Credits.** An endpoint may have K requests outstanding for each [`Translation`], and a node 24
//! for each other node. A request that has no credit waits, as long as its [`Wait`](hamlyn::Wait)
//! says, and polls its bundle meanwhile; with `Wait::Poll` it never waits and runs no handler.
//!
//! **Waiting.** [`Bundle::serve`] and [`Bundle::wait`] poll for a while and then sleep: a bundle
//! that is idle costs no processor time.
//!
//! **Protection.** The tag is checked by the interface, as the key of a port. All that a peer can
//! send is checked, read once, and charged to its link; it harms that link only.
//!
//! A node stays in the thread that opened it.
#![forbid(unsafe_code)]

mod bulk;
mod bundle;
mod call;
mod dropped;
mod endpoint;
mod error;
mod name;
mod node;
mod options;
mod paging;
mod peer;
mod poll;
mod port;
mod receive;
mod replies;
mod residence;
mod returned;
mod segment;
mod send;
mod serving;
mod shared;
mod spares;
mod state;
mod statistics;
mod traffic;
mod transfer;
mod translation;
mod upkeep;
mod wire;
mod writing;

pub use bundle::{Bundle, Events};
pub use call::{Call, Deferred, Outcome};
pub use endpoint::Endpoint;
pub use error::{Blocked, CallError, Error, NameError, Reason};
pub use name::{Name, Tag};
pub use node::Node;
pub use options::NodeOptions;
pub use poll::POLL_MESSAGES_MAX;
pub use port::Incoming;
pub use returned::{Operation, Returned};
pub use statistics::Statistics;
pub use translation::Translation;
pub use wire::{ARGUMENTS_MAX, NAME_BYTES};
