//! CRL: the C Region Library.
#![forbid(unsafe_code)]

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
mod machine;
mod memory;
mod message;
mod null;
mod regions;
mod udm;

pub use courier::{Courier, Incoming};
pub use crl::{Crl, CrlOptions, Region, Statistics};
pub use error::{CrlError, REGION_BYTES_MAX};
pub use guard::{ReadGuard, WriteGuard};
pub use id::{NODES_MAX, RegionId};
pub use message::{Kind, WORDS_MAX};
pub use null::{CrlNull, NullRegion};
pub use regions::{RegionHandle, Regions};
pub use udm::UdmCourier;
