//! The face of the library as traits, so that a program runs over the real one and over the null
//! version.

use crate::error::CrlError;
use crate::guard::{Ends, ReadGuard, WriteGuard};
use crate::id::RegionId;

/// Regions and operations of all nodes: [`Crl`](crate::Crl) or [`CrlNull`](crate::CrlNull), which
/// say what each operation does.
pub trait Regions {
    /// A mapped region.
    type Region: RegionHandle;

    /// The number of this node.
    fn me(&self) -> u32;
    /// The number of nodes.
    fn nodes(&self) -> u32;
    /// Creates a region.
    fn create(&self, bytes: usize) -> Result<RegionId, CrlError>;
    /// Destroys a region that is mapped nowhere.
    fn destroy(&self, region: RegionId) -> Result<(), CrlError>;
    /// Maps a region.
    fn map(&self, region: RegionId) -> Result<Self::Region, CrlError>;
    /// Waits for all nodes.
    fn barrier(&self) -> Result<(), CrlError>;
    /// Sends bytes to all other nodes.
    fn broadcast(&self, bytes: &[u8]) -> Result<(), CrlError>;
    /// Receives the next broadcast.
    fn receive_broadcast(&self, bytes: &mut [u8]) -> Result<(), CrlError>;
    /// The sum of a value of each node, added in the order of nodes.
    fn reduce_add(&self, value: f64) -> Result<f64, CrlError>;
    /// The least value.
    fn reduce_min(&self, value: f64) -> Result<f64, CrlError>;
    /// The greatest value.
    fn reduce_max(&self, value: f64) -> Result<f64, CrlError>;
}

/// A mapped region. Its drop unmaps it.
pub trait RegionHandle: Ends + Sized {
    /// Its name.
    fn id(&self) -> RegionId;
    /// The number of its bytes.
    fn bytes(&self) -> usize;
    /// Begins a reading operation.
    fn read(&self) -> Result<ReadGuard<'_, Self>, CrlError>;
    /// Begins a writing operation.
    fn write(&self) -> Result<WriteGuard<'_, Self>, CrlError>;
    /// Gives this node's copy up.
    fn flush(&self) -> Result<(), CrlError>;
}
