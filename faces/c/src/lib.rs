//! Hamlyn for C: the library `libhamlyn` and its header `include/hamlyn.h`, which is generated from what is here.
//!
//! A C program has *handles*: a manager, and its end points. Each function returns a status, and writes a text with the remedy if it
//! was given room for one. Null, a handle that was closed, one of another kind, one of another thread, and lengths that
//! cannot be are refused with an error (`handle`, `boundary`); a panic stops at the boundary and is an error, too. Nothing is called back.
//!
//! The protocols of the library (`Hamlyn 3`) have a module each, and so have the objects of the lower layer: areas, slots, queues, termini, targets,
//! initiators.

#![expect(
    clippy::missing_safety_doc,
    reason = "the head of the header says once what all functions demand of pointers"
)]

pub mod area;
mod at_once;
mod boundary;
pub mod completion;
pub mod completions;
pub mod datagram;
pub mod detached;
pub mod entry;
pub mod event;
pub mod event_loop;
pub mod figures;
pub mod group;
mod handle;
pub mod handover;
mod holding;
pub mod kept;
pub mod lanes;
pub mod links;
pub mod loans;
mod lower;
pub mod mailbox;
pub mod manager;
pub mod member;
pub mod one_sided;
pub mod options;
pub mod peer;
pub mod pool;
pub mod queue;
pub mod refusal;
pub mod region;
pub mod service;
pub mod shared_lanes;
pub mod slot;
pub mod status;
pub mod stream;
pub mod tagged_write;
pub mod target;
pub mod terminus;
pub mod ticket;
pub mod waiting;
pub mod window;
