//! User Direct Messaging over Hamlyn (`T 3`; decision 59): messages of a few words that run
//! handlers, atomic sections, and two-case delivery.
//!
//! The nodes of a [`Group`] are the processes of one parallel program. Each opens an end point
//! ([`Udm`]) of the same name, with handlers numbered from 0 on and a state that they share. A
//! message names a node and a handler, and brings up to [`WORDS_MAX`] words, or some kilobytes.
//!
//! ```
//! use hamlyn::Wait;
//! use hamlyn_udm::{Group, GroupOptions, Udm, UdmOptions};
//!
//! const ADD: u16 = 0;
//! const SUM: u16 = 1;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let name = format!("udm-doc-{}", std::process::id());
//! // Usually each node is a process of its own, and `GroupOptions::of_job` names them.
//! let manager = hamlyn::open(&name)?;
//! let addresses = vec![name];
//! let group = Group::new(manager, GroupOptions { name: "sums".into(), me: 0, addresses })?;
//! let mut udm = Udm::open(&group, "main", UdmOptions::default(), 0_u32, Wait::millis(10_000))?;
//! udm.on(ADD, |arrival| {
//!     let mut call = arrival.extract();
//!     let (source, sum) = (call.source(), call.word(0) + call.word(1));
//!     // It goes to a node that lives, as it has just asked.
//!     let _ = call.inject(source, SUM, &[sum]);
//!     call
//! })?;
//! udm.on(SUM, |arrival| {
//!     let mut call = arrival.extract();
//!     *call.state() = call.word(0);
//!     call
//! })?;
//! udm.inject(0, ADD, &[40, 2])?;
//! while *udm.atomic() == 0 {
//!     udm.serve(Wait::millis(1000))?;
//! }
//! assert_eq!(*udm.atomic(), 42);
//! # Ok(())
//! # }
//! ```
//!
//! **Delivery.** A message that was injected is extracted once, unless its destination ends, its
//! queue is full ([`UdmOptions::queue_bytes`]), or its sender ends before it has handed the message
//! over ([`Udm::flush`]); those of one node to another arrive in order. Nobody answers for it. If its destination takes nothing,
//! it waits in memory that the destination lends (the interface's overflow log, decision 53):
//! [`Udm::mode`] tells the two cases apart, and programs need not.
//!
//! **Bulk.** [`Udm::inject_bulk`] brings data of any length into the area of a node
//! ([`UdmOptions::area_bytes`]), at a place that the sender names, and then runs a handler, which
//! is told that place ([`Message::place`]).
//!
//! **Atomicity.** A handler runs in an atomic section, and so does what follows [`Udm::atomic`]: no
//! other handler runs meanwhile. Outside of sections handlers run when the program polls, at the end
//! of a section, and while an injection waits for room ([`Interrupt::Safepoint`]); or at once, in a
//! thread of their own ([`Udm::with_upcalls`]), or in that of the program, which a signal interrupts
//! ([`Udm::with_signals`]).
//!
//! **Protection.** The interface compares the identity of the group and a random key before a
//! message is shown. A message is loaded once. Nodes of a group trust each other with barriers and
//! handlers; a process that is none reaches no handler.
#![deny(unsafe_code)]

mod barrier;
mod bulk;
mod collective;
mod endpoint;
mod error;
mod event;
mod group;
mod handler;
mod limits;
mod message;
mod options;
mod order;
mod section;
mod signal;
mod signals;
mod uac;
mod udm;
mod upcalls;

pub use error::{AtomError, Error, InjectError};
pub use event::{Event, Mode, Statistics};
pub use group::{Group, GroupOptions};
pub use handler::{Arrival, Call, Context};
pub use limits::{BYTES_MAX, HANDLERS_MAX, NODES_MAX, WORDS_MAX};
pub use message::Message;
pub use options::{Interrupt, UdmOptions};
pub use section::Section;
pub use signals::{SignalOptions, Signals, Suspension};
pub use uac::{ATOMICITY_EXTEND, DISPOSE_PENDING, INTERRUPT_DISABLE, TIMER_FORCE};
pub use udm::Udm;
pub use upcalls::{Exclusive, Upcalls};
