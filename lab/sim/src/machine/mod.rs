//! Machines: resources that are busy in virtual time, and the engine running on them.
//!
//! A machine is a file in `machines/`, each of whose numbers says where it is from. What a message
//! takes is nowhere written down: the engine passes a point beside each access that it makes
//! ([`hamlyn_engine::point`]), the file says what is occupied at each point, and who had to wait
//! for whom follows.
//!
//! Parts: a [`machine_file`] is read, its numbers by [`number`] and its scripts as steps; a
//! [`resource::Resource`] serves one at a time; `boards` has the steps' turns and the wire; a
//! [`system`] is the applications, and the clock. `charges` has the world's programs take what a
//! machine says.
//!
//! It refuses to model what the papers do not tell: cells or routes of the wire beneath a packet.

mod boards;
pub(crate) mod charges;
pub mod component;
mod host;
pub mod machine_file;
pub mod memory;
pub mod number;
pub mod resource;
pub(crate) mod step;
pub mod system;

pub use component::{Component, ComponentTimes};
pub use machine_file::{Machine, MachineError};
pub use step::PointName;
pub use system::{Arrival, OutgoingMessage, Protocol, System};
