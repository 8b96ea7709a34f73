//! CRL: the C Region Library.
#![forbid(unsafe_code)]

mod context;
mod copy;
mod directory;
mod error;
mod home;
mod id;
mod machine;
mod memory;
mod message;

pub use error::{CrlError, REGION_BYTES_MAX};
pub use id::{NODES_MAX, RegionId};
pub use message::Kind;
