//! Handshakes that are not heard: counted, and within reason told, because the other side learns
//! nothing of the cause.

use std::net::SocketAddr;

use hamlyn_link::udp::handshake::Unheard;

use crate::process::clock::now_ns;
use crate::process::counters::{LogBudget, Outcome, Tally};

/// Counts and logs what a stranger caused; anything else is left to the caller, and false.
pub(crate) fn note_stranger(
    tally: &Tally,
    log: &mut LogBudget,
    from: SocketAddr,
    why: Unheard,
) -> bool {
    let reason = match why {
        Unheard::Unauthentic => {
            "it was made with another secret (HAMLYN_SECRET), for the key of another host (HAMLYN_KNOWN there), or for a program that had this port before"
        }
        Unheard::Broken => "its sender does not hold the secret or the key that it claims",
        Unheard::Stranger => "its key is not in the list of hosts (HAMLYN_KNOWN)",
        Unheard::OtherSecurity => {
            "its sender has another kind of security: of a secret (HAMLYN_SECRET), keys (HAMLYN_KEY) and none (HAMLYN_INSECURE) both hosts must choose the same"
        }
        _ => return false,
    };
    tally.count(Outcome::Unauthentic);
    if let Some(suppressed) = log.line(now_ns()) {
        tracing::warn!(%from, reason, suppressed, "a handshake is not answered");
    }
    true
}
