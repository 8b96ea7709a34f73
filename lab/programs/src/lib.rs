//! The parallel programs of the paper's experiments on software shared memory (`T 5.1`), written
//! for this project: each is generic over [`Regions`](hamlyn_crl::Regions), so it runs over
//! [`Crl`](hamlyn_crl::Crl) on any number of nodes and over [`CrlNull`](hamlyn_crl::CrlNull) as its
//! serial run. A run on any number of nodes gives the same bits as the serial one.
#![forbid(unsafe_code)]

pub mod barnes;
pub mod lu;
mod shared;
pub mod water;
