//! Parallel programs of the papers, written for this project, over any host: they run on the
//! simulator's machines and in processes of a real one, and each checks its result.
//!
//! The programs of [`barrier`], [`enumerate`] and [`synth`] send by User Direct Messaging. They do
//! not know what runs them: a [`Processor`] computes for them and waits for messages.

pub mod barrier;
pub mod enumerate;
mod processor;
pub mod synth;

pub use processor::{Live, Processor, ProgramError};
