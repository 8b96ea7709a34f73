//! Objects of all nodes, each a region, which the programs share.

use hamlyn_crl::{CrlError, RegionId, Regions};

/// Makes the regions of this node known to all: those of each node, by node, in its order.
pub(crate) fn publish<R: Regions>(
    crl: &R,
    own: &[RegionId],
    counts: impl Fn(u32) -> usize,
) -> Result<Vec<Vec<RegionId>>, CrlError> {
    const BYTES: usize = size_of::<u64>();
    let mut all = Vec::new();
    for node in 0..crl.nodes() {
        let mut bytes = vec![0; counts(node) * BYTES];
        if node == crl.me() {
            bytes = own
                .iter()
                .flat_map(|id| id.to_u64().to_le_bytes())
                .collect();
            crl.broadcast(&bytes)?;
        } else {
            crl.receive_broadcast(&mut bytes)?;
        }
        let (numbers, _) = bytes.as_chunks();
        let ids = numbers
            .iter()
            .map(|number| RegionId::from_u64(u64::from_le_bytes(*number)));
        all.push(ids.collect());
    }
    Ok(all)
}

/// Numbers between 0 and 1, the same everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}
