//! Parallel programs of the papers, written for this project, over any host: they run on the
//! simulator's machines and in processes of a real one, and each checks its result.
//!
//! The programs of [`barrier`], [`enumerate`] and [`synth`] send by User Direct Messaging. They do
//! not know what runs them: a [`Processor`] computes for them and waits for messages.
//!
//! Those of [`lu`], [`water`] and [`barnes`] share memory in software (`T 5.1`): each is generic over
//! [`Regions`](hamlyn_crl::Regions), so it runs over [`Crl`](hamlyn_crl::Crl) on any number of nodes
//! and over [`CrlNull`](hamlyn_crl::CrlNull) as its serial run. A run on any number of nodes gives
//! the same bits as the serial one. They compute by a [`RegionProcessor`], and count its operations.
#![forbid(unsafe_code)]

pub mod barnes;
pub mod barrier;
pub mod enumerate;
pub mod lu;
mod processor;
mod shared;
mod shared_program;
pub mod synth;
pub mod water;

pub use processor::{Live, Processor, ProgramError, RegionProcessor};
pub use shared_program::{Marks, SharedProgram};
