//! The handshake and its two payloads: the initiator shakes hands, sends its request, and gets the
//! answer; each side then knows who the other is, and both have keys for a link.
//!
//! Pure state machines: bytes and the time come in, bytes go out; only randomness is taken from the
//! system, or from a simulation (`randomness`). An [`Initiator`] asks until it is answered; a
//! [`Responder`] serves a whole socket and keeps nothing of those it has not authenticated. With a
//! cluster's secret it is Noise `NNpsk0`, with keys of hosts Noise `IK`; without either the same
//! messages go in the clear, and an attacker that does not see them cannot finish the handshake.
//!
//! | message | what it carries | what the responder knows then |
//! |---|---|---|
//! | initiation | a point of the curve | a holder of the credentials made it, once |
//! | response | another | |
//! | payload | the request, protected | the initiator is alive, and receives at its source |
//! | payload | the answer, protected | |
//!
//! What a message costs whom:
//! * An initiation carries a code (`mac1`, as WireGuard's) that only holders of the secret can
//!   make, or those who know the responder's public key, and only for the interface that is asked.
//!   A message without it costs one hash. No point is multiplied for it, and nothing is stored.
//! * No answer is longer than what it answers until the source is proved.
//! * An initiation is *fresh* if its time is within [`FRESH_MS`] of the responder's. One that is
//!   not, and every one under load, is answered with a cookie, bound to its source, and accepted
//!   with that. Clocks that differ cost a round trip.
//! * A repeated message is answered with the same bytes, as long as they are kept; an initiator
//!   that gets no answer begins anew.
//!
//! A replayed initiation may be answered, and does nothing else: a request is accepted only from a
//! peer that has the keys of this handshake, which proves that it is alive.

mod cookie;
mod initiator;
mod message;
mod noise;
mod responder;

use core::fmt;

pub use initiator::{Initiator, Taken};
pub use message::{COOKIE_MESSAGE_BYTES, MESSAGE_BYTES_MAX, PAYLOAD_BYTES_MAX};
pub use responder::{Heard, Responder, Said};

use super::key_file::{ClusterSecret, HostKey, PublicKey};
use super::protection::Key;
use super::randomness::NoRandom;

/// By how much the clocks of two hosts may differ without an additional round trip, in
/// milliseconds.
pub const FRESH_MS: u64 = 120_000;

/// By what hosts recognise each other. All hosts of a cluster need the same kind.
#[derive(Clone)]
pub enum Credentials {
    /// Every holder of the secret is accepted.
    Secret(ClusterSecret),
    /// Hosts by their keys.
    Keys {
        /// Our own.
        own: HostKey,
        /// The hosts that are accepted and may be connected to: name and key. One name, one key.
        hosts: Vec<(String, PublicKey)>,
    },
    /// Anyone is welcome, and nothing is secret.
    Insecure,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Secret(_) => "Secret(..)",
            Self::Keys { .. } => "Keys(..)",
            Self::Insecure => "Insecure",
        })
    }
}

/// The peer, as far as it has proved its identity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Identity {
    /// A holder of the secret of the cluster.
    SecretHolder,
    /// The host with this name in our list.
    Host(String),
    /// Nobody knows.
    Anyone,
}

/// Keys of both directions.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Of what we send.
    pub send: Key,
    /// Of what we receive.
    pub receive: Key,
}

impl Keys {
    /// Those of a link, where these are the keys of a handshake.
    fn of_link(&self) -> Self {
        let [send, receive] = [&self.send, &self.receive].map(|key| key.derive("hamlyn 1 link"));
        Self { send, receive }
    }
}

/// The answer to a request.
#[derive(Debug)]
pub struct Answered {
    /// The answer.
    pub payload: Vec<u8>,
    /// Keys for a link, if it comes to that.
    pub keys: Keys,
    /// The peer.
    pub identity: Identity,
}

/// A handshake could not be begun or answered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The list of hosts has no such name.
    #[error("no key is known for the host {0}")]
    UnknownHost(String),
    /// With keys of hosts, the caller must name the host that it asks.
    #[error("a host must be named whose key is expected")]
    NoHost,
    /// The payload is longer than a handshake can carry.
    #[error("a handshake payload of {bytes} bytes: at most {PAYLOAD_BYTES_MAX}")]
    Payload {
        /// How much there is.
        bytes: usize,
    },
    /// The system gives no random bytes.
    #[error(transparent)]
    Random(#[from] NoRandom),
    /// The library refuses. It does that only with keys that cannot be ones.
    #[error("the handshake could not be made: {0}")]
    Noise(String),
}

/// Why a message was not heard. Nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unheard {
    /// It is no message of this handshake, or not for us.
    #[error("not a message of this handshake")]
    Malformed,
    /// It was made without the secret, without knowing our key, or not in answer to what we asked.
    #[error("a message by someone without the secret")]
    Unauthentic,
    /// Its sender does not hold the keys.
    #[error("the peer does not hold the keys")]
    Broken,
    /// It was made with another kind of security than ours.
    #[error("a message of a host with another kind of security")]
    OtherSecurity,
    /// Its key is in no list.
    #[error("a host whose key is not in the list")]
    Stranger,
    /// It was answered, and there is nothing more to be said to it; or its handshake is not known.
    #[error("answered before")]
    Stale,
    /// A second cookie before the first was tried.
    #[error("a cookie too many")]
    Repeated,
    /// There was an answer; more of it changes nothing.
    #[error("the request was answered")]
    Done,
    /// The system gives no random bytes.
    #[error(transparent)]
    Random(#[from] NoRandom),
}

#[cfg(test)]
mod tests;
