//! The memory that others lend to a node, as far as it was used.

use hamlyn_udm::Group;
use serde::{Deserialize, Serialize};

/// Of all that lend to a node: times at which messages went there, bytes in all, and the most that
/// waited at one of them.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
pub(super) struct Logs {
    pub(super) episodes: u64,
    pub(super) spilled_bytes: u64,
    pub(super) most_bytes: u64,
}

impl Logs {
    /// Up to now.
    pub(super) fn of(group: &Group) -> Self {
        let mut all = Self::default();
        for node in 0..group.nodes() {
            // A node sends to itself over a ring alone.
            let used = group.log_use(node).unwrap_or_default();
            all.episodes += used.episodes;
            all.spilled_bytes += used.spilled_bytes;
            all.most_bytes = all.most_bytes.max(used.most_bytes);
        }
        all
    }
}
