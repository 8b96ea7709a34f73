//! What of the engine stands in the signatures of the lower layer, and in errors. The rest is not
//! public: it may change with any version.

/// Counts of packets, and their division among the members of a group.
pub mod counting {
    pub use hamlyn_engine::counting::{Counting, DivideError, Share, packets_needed};
}

/// Why a grant was refused.
pub mod grant {
    pub use hamlyn_engine::grant::GrantRefused;
}

/// Keys.
pub mod key {
    pub use hamlyn_engine::key::Key;
}

/// Limits of messages and queues.
pub mod limits {
    pub use hamlyn_engine::limits::{
        DIRECT_BYTES_MAX, FAST_INDEX, GATHER_PIECES_HELD, GATHER_PIECES_MAX, GRANTS_PER_SLOT_MAX,
        PACKET_PAYLOAD_MAX, SEND_AREAS_MAX, SHORT_BYTES_MAX, USER_METADATA_BYTES,
        WORK_QUEUE_ENTRIES,
    };
}

/// Names of links.
pub mod memory {
    pub use hamlyn_engine::memory::LinkId;
}

/// Metadata entries.
pub mod metadata {
    pub use hamlyn_engine::metadata::{BadEntryCount, MetadataArea, MetadataEntry, Permission};
}

/// Notifications.
pub mod notification {
    pub use hamlyn_engine::notification::{Notification, Overrun, QueueError};
}

/// Names of slots.
pub mod packet {
    pub use hamlyn_engine::packet::SlotName;
}

/// Points of an interface's work, at which a simulated machine charges time. Layers pass theirs by
/// [`Host::passes`](crate::Host::passes).
pub mod point {
    pub use hamlyn_engine::point::{Point, UdmPoint};
}

/// Why a packet was refused.
pub mod refusal {
    pub use hamlyn_engine::refusal::{Refusal, Refusals};
}

/// Slots.
pub mod slot {
    pub use hamlyn_engine::slot::{Mode, QueueId, Rights, SlotError, SlotInfo};
}

/// Send termini.
pub mod terminus {
    pub use hamlyn_engine::terminus::{
        Completion, GatherPiece, PostError, SendHandle, SendTag, TerminusError, TerminusId,
        TerminusOptions,
    };
}

/// Why a packet came back from another host.
pub mod transport {
    pub use hamlyn_engine::transport::Return;
}
