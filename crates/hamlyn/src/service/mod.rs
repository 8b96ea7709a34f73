//! Request and reply: a service answers calls of many clients. A call whose reply does not come has
//! failed for a reason that its client is told: the time was over, the server dropped the call, or
//! the server is gone.
//!
//! A *lane* of buffers is open for each client: one buffer for each call that it may have
//! outstanding, with a key that no other client has, and a one-shot entry, so that a request lands
//! in memory which is its own until it is answered (`Hamlyn 2.7`). The client opens buffers for its
//! replies in the same way. So a client cannot overwrite, delay or read what is another's; one that
//! stops taking its replies has them kept within the bounds of [`ServiceOptions`], one that
//! vanishes gives its lane back, and one that breaks the protocol loses it.
//!
//! A few lanes are offered at a time, under the item of the service; each asker gets one. A lane
//! whose asker does not present itself in time is taken back. No asker gets all: a program other
//! than the service's own gets a lane as long as it has less than twice of what it leaves to
//! others, and so ends with two thirds; all programs of another user, or of another host, together
//! end with one half. Whoever asks in vain is told whether all lanes are taken or its share is. Who
//! may ask says the access list; [`Service::dismiss`] takes all lanes of a client away.

mod calls;
mod client;
mod error;
mod lane;
mod lanes;
mod server;
mod wire;

pub use calls::Pending;
pub use client::{Client, Kept, Reply};
pub use error::CallError;
pub use lanes::Answered;
pub use server::{Call, Deferred, ReplyError, Service};
pub use wire::{MESSAGE_BYTES_MAX, OUTSTANDING_MAX};

use crate::error::OpenError;

/// What a service is opened with. A client takes `outstanding * request_bytes` bytes of memory, of
/// which it costs only what requests have touched, and `outstanding + 2` entries of the manager's
/// queue. Services of one manager share that queue, of 4,096 entries if its options say nothing
/// else: a service that could not have all of its clients alone is refused when it is bound, and
/// where several find no room for another client, that client is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceOptions {
    /// Bytes of the longest request, 1 to 128 MiB. Default 4,096.
    pub request_bytes: u32,
    /// Bytes of the longest reply, 1 to 128 MiB. Default 4,096.
    pub reply_bytes: u32,
    /// Calls that each client may have outstanding, 1 to 4,096. Default 8.
    pub outstanding: u16,
    /// Clients at a time, up to 65,535. Default 0: as many as the manager's queue has entries for,
    /// 256 at most.
    pub clients: u16,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            request_bytes: 4096,
            reply_bytes: 4096,
            outstanding: 8,
            clients: 0,
        }
    }
}

impl ServiceOptions {
    fn check(&self) -> Result<(), OpenError> {
        let lengths = 1..=MESSAGE_BYTES_MAX;
        let settings = [
            ("a service's requests", self.request_bytes, lengths.clone()),
            ("a service's replies", self.reply_bytes, lengths),
            (
                "a service's outstanding calls",
                u32::from(self.outstanding),
                1..=u32::from(OUTSTANDING_MAX),
            ),
        ];
        for (setting, value, allowed) in settings {
            if !allowed.contains(&value) {
                return Err(OpenError::Setting {
                    setting,
                    value: u64::from(value),
                    reason: "requests and replies have 1 byte to 128 MiB; there are 1 to 4,096 calls",
                });
            }
        }
        Ok(())
    }
}
