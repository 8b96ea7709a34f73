//! CRL, the C Region Library: software distributed shared memory over Hamlyn (`T 5.1`; decision
//! 61).
//!
//! A *region* is up to a mebibyte of memory that all nodes of a program share. It has a name
//! ([`RegionId`]), and a *home*, the node that created it. A node maps it, and then reads or writes
//! it in *operations*: between their begin and their end its copy is valid. A guard is an open
//! operation.
//!
//! ```
//! use hamlyn::Wait;
//! use hamlyn_crl::{Crl, CrlOptions, RegionHandle, Regions};
//! use hamlyn_udm::{Group, GroupOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let names: Vec<String> = (0..2).map(|me| format!("crl-doc-{}-{me}", std::process::id())).collect();
//! # std::thread::scope(|scope| {
//! # let nodes: Vec<_> = (0..2).map(|me| { let names = names.clone(); scope.spawn(move || {
//! // Usually each node is a process of its own, and `GroupOptions::of_job` names them.
//! let manager = hamlyn::open(&names[me as usize])?;
//! let options = GroupOptions { name: "sum".into(), me, addresses: names };
//! let group = Group::new(manager, options)?;
//! let crl = Crl::join(&group, "main", CrlOptions::default(), Wait::millis(10_000))?;
//!
//! let mut name = [0; 8];
//! if crl.me() == 0 {
//!     name = crl.create(80)?.to_u64().to_le_bytes();
//!     crl.broadcast(&name)?;
//! } else {
//!     crl.receive_broadcast(&mut name)?;
//! }
//! let region = crl.map(hamlyn_crl::RegionId::from_u64(u64::from_le_bytes(name)))?;
//! for _ in 0..100 {
//!     // No other node reads or writes it meanwhile.
//!     region.write()?.values::<u64>()?[3] += 1;
//! }
//! crl.barrier()?;
//! assert_eq!(region.read()?.values::<u64>()?[3], 200);
//! crl.finish(Wait::millis(10_000))?;
//! # Ok::<_, Box<dyn std::error::Error + Send + Sync>>(()) }) }).collect();
//! # nodes.into_iter().for_each(|node| node.join().unwrap().unwrap());
//! # });
//! # Ok(())
//! # }
//! ```
//!
//! **Consistency.** Whole operations are sequentially consistent: all nodes see them in one order,
//! in which those of each node are in their own. Readers of several nodes may be active at a time;
//! a writer is alone.
//!
//! **Cost.** An operation on a copy that is valid takes no message. Otherwise a read takes two, or
//! four if another node has written; a write takes two and two for each other copy, and no bytes if
//! this node has read before; four if another node has written, whose bytes come straight from
//! there. A copy stays valid after its region is unmapped.
//!
//! **Progress.** A node answers others in its own calls. One that computes delays those that need
//! its copies, and no others: [`Crl::serve`] in a long computation helps them. Requests for a
//! region are served in their order, but a node that reads it may begin to read it again.
//!
//! **Messages** are carried by a [`Courier`]: [`UdmCourier`] over User Direct Messaging
//! ([`Crl::join`]), or [`AmCourier`] over Active Messages ([`Crl::join_over_am`]). Promises and
//! calls are the same; a `Box<dyn Courier>` leaves the choice to the run. Over Active Messages what
//! a node does not take waits at its senders, and leaves in calls of these.
//!
//! **Deaths.** A region is lost with its home, and with the node that has the only copy: operations
//! fail with [`CrlError::Lost`], and those on other regions go on.
//!
//! **Trust.** The nodes of a program trust each other with their regions. What a node sends can
//! change or lose regions; it cannot make another one panic, or wait for longer than
//! [`CrlOptions::patience`] after the last message.
#![forbid(unsafe_code)]

mod am;
mod bare;
mod collective;
mod context;
mod copy;
mod courier;
mod crl;
mod directory;
mod error;
mod guard;
mod home;
mod id;
mod join;
mod machine;
mod memory;
mod message;
mod null;
mod order;
mod peers;
mod regions;
mod udm;

pub use am::AmCourier;
pub use courier::{Courier, Incoming};
pub use crl::{Crl, CrlOptions, Region, Statistics};
pub use error::{CrlError, REGION_BYTES_MAX};
pub use guard::{ReadGuard, WriteGuard};
pub use id::{NODES_MAX, RegionId};
pub use message::{Kind, WORDS_MAX};
pub use null::{CrlNull, NullRegion};
pub use regions::{RegionHandle, Regions};
pub use udm::UdmCourier;
