//! The machine of 1996: resources that are busy in virtual time, and the engine running on them
//! (`Hamlyn 4`).
//!
//! Packets come out of the engine's transmitting half and go into its receiving half; the machine only charges time
//! for what their headers and the engine's checks say. So what a message takes is nowhere written down: it follows
//! from [`Parameters`], each of which names its source, and from who had to wait for whom.
//!
//! Parts: a [`resource::Resource`] serves one at a time; [`parameters`] says what each step occupies; a [`card`] is an interface,
//! two sequences of steps that share its resources; a [`system`] is hosts with cards around a switch, and the clock.
//!
//! It refuses to model what the paper does not tell: caches, the operating system but for a wake-up, and cells or
//! routes of the wire beneath a packet.

pub mod card;
mod cards;
pub(crate) mod carrier;
pub mod component;
pub(crate) mod cost_model;
pub mod memory;
pub mod modern;
pub mod named;
pub mod parameters;
pub mod resource;
pub mod system;

pub use component::{Component, ComponentTimes};
pub use parameters::Parameters;
pub use system::{Arrival, OutgoingMessage, Protocol, System};
