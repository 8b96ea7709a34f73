//! The endpoint driver: what the control thread does for the UDP endpoint, beside the application.
//!
//! It answers handshakes at the endpoint's port. When the application does not poll for a while,
//! because it computes, it takes its place: it retransmits lost frames, receives as far as there is
//! room, and answers peers. As long as the application polls, or sleeps at the socket itself, the
//! endpoint driver leaves the endpoint alone. An application without links to other hosts does
//! neither.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;

use hamlyn_link::udp::handshake::{Heard, Identity, Said};
use hamlyn_link::udp_endpoint::UdpEndpoint;

use super::handshake_payload::{Answer, InvalidPayload, REPLIES_BYTES_MAX, Request, Side};
use super::resolver::{GivenOffer, Network, is_of_host, peer_of, wall_ms};
use super::unheard::note_stranger;
use crate::RefusedBecause;
use crate::offers::Asker;
use crate::process::Interior;
use crate::process::clock::now_ns;
use crate::process::counters::{LogBudget, Outcome};
use crate::process::registry::{NewLink, PeerKey, watch_udp};
use crate::question::{Question, Reply};

/// The endpoint driver polls after the application has not polled for this time.
const ABSENT_NS: u64 = 10_000_000;
/// How often that is checked while the application sleeps.
const ASLEEP_NS: u64 = 200_000_000;
/// How late it is at the soonest.
const LATE_NS: u64 = 500_000;
/// Unassociated datagrams answered at a time.
const DATAGRAMS_PER_TURN: usize = 16;
/// Offers that are kept to be given again.
const GIVEN_MAX: usize = 1_024;

const _: () = assert!(GIVEN_MAX >= Question::ITEMS_MAX);

/// See the module.
pub(crate) struct EndpointDriver {
    /// Whether the endpoint driver polls, so that the socket wakes the control thread.
    is_driving: bool,
    /// The application's count of polls at the last check.
    looks: u64,
    /// Time of the next check.
    due_ns: u64,
    /// When the endpoint wants something, while the application sleeps at it.
    wants_ns: u64,
    /// More datagrams wait than are answered at a time.
    has_more: bool,
    /// The endpoint's deadline, while the endpoint driver polls.
    deadline_ns: Option<u64>,
    /// An unassociated datagram.
    message: Vec<u8>,
    log: Log,
}

/// Bounds the lines that peers, and strangers, can cause.
struct Log {
    peers: LogBudget,
    strangers: LogBudget,
}

impl Default for EndpointDriver {
    fn default() -> Self {
        Self {
            is_driving: false,
            looks: 0,
            due_ns: 0,
            wants_ns: u64::MAX,
            has_more: false,
            deadline_ns: None,
            message: Vec::new(),
            log: Log {
                peers: LogBudget::default(),
                strangers: LogBudget::of_strangers(),
            },
        }
    }
}

impl EndpointDriver {
    /// When [`EndpointDriver::drive`] is to be called though nothing happens.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        match self.is_driving {
            _ if self.has_more => Some(0),
            true => self.deadline_ns,
            false => Some(self.due_ns.min(self.wants_ns)),
        }
    }

    /// To be called when anything happened, and at the deadline.
    pub(crate) fn drive(&mut self, interior: &Interior) {
        let Some(network) = &interior.network else {
            return;
        };
        let endpoint = &network.endpoint;
        endpoint.end_driver_sleep();
        interior.registry.note_ended_connections();
        let is_used = interior.registry.has_remote_links();
        let looks = endpoint.polls();
        let is_looking = core::mem::replace(&mut self.looks, looks) != looks;
        let now_ns = now_ns();
        let is_asking = endpoint.handshakes().is_any_pending();
        self.wants_ns = u64::MAX;
        if endpoint.take_untold() {
            // The application's other threads have taken what the sleeper waits for.
            interior.registry.waker().wake();
        }
        if self.is_driving {
            if is_used && is_looking && !is_asking {
                self.watch(interior, endpoint, false);
                self.due_ns = now_ns + ABSENT_NS;
            } else if endpoint.poll() {
                // The application may sleep, and what it waits for is not at the socket any more.
                interior.registry.waker().wake();
            }
        } else if is_used && endpoint.is_asleep() && !is_asking {
            // The sleeper wakes for datagrams and for the deadline that it knew; another thread may
            // have sent since.
            let wants_ns = endpoint.deadline_ns().unwrap_or(u64::MAX);
            if wants_ns <= now_ns && endpoint.poll() {
                interior.registry.waker().wake();
            }
            self.wants_ns = wants_ns.max(now_ns + LATE_NS);
            // Not before a check is due: one that sleeps for every message wakes often.
            if now_ns >= self.due_ns {
                self.due_ns = match endpoint.ask_for_waking() {
                    true => now_ns + ASLEEP_NS,
                    false => now_ns + ABSENT_NS,
                };
            }
        } else if !is_used || now_ns >= self.due_ns || is_asking {
            self.due_ns = now_ns + ABSENT_NS;
            // A pending handshake waits for the answers that the polling thread finds.
            if !is_used || !is_looking || is_asking {
                self.watch(interior, endpoint, true);
                if endpoint.poll() {
                    // It may sleep, at its descriptor, where it is told of no datagram.
                    interior.registry.waker().wake();
                }
            }
        } else {
            // It may have slept when that was decided.
            self.due_ns = self.due_ns.min(now_ns + ABSENT_NS);
        }
        self.has_more = true;
        for _ in 0..DATAGRAMS_PER_TURN {
            let Some(from) = endpoint.handshakes().next_message(&mut self.message) else {
                self.has_more = false;
                break;
            };
            apply_request(interior, network, &mut self.log, from, &self.message);
        }
        if self.is_driving {
            self.deadline_ns = endpoint.begin_driver_sleep();
        }
    }

    fn watch(&mut self, interior: &Interior, endpoint: &UdpEndpoint, watch: bool) {
        // If the system has no room for it, the next check tries again.
        if watch_udp(interior.registry.watch(), endpoint, watch).is_ok() {
            self.is_driving = watch;
        }
    }
}

/// Handles an unassociated datagram.
fn apply_request(
    interior: &Interior,
    network: &Network,
    log: &mut Log,
    from: SocketAddr,
    message: &[u8],
) {
    let is_loaded = network.endpoint.handshakes().is_crowded();
    let mut responder = network.responder();
    let said = match responder.take(now_ns(), wall_ms(), from, message, is_loaded) {
        Ok(Heard::Said(said)) => said,
        Ok(Heard::Reply(reply)) => {
            let _ = network.endpoint.answer(from, reply);
            return;
        }
        Err(why) => {
            let tally = &interior.registry.tally;
            if !note_stranger(tally, &mut log.strangers, from, why) {
                tally.count(Outcome::Invalid);
            }
            return;
        }
    };
    drop(responder);
    let answer = match Request::from_bytes(&said.payload) {
        Ok(Request::Link(side)) => welcome(interior, network, log, from, &said, &side),
        Ok(Request::Ask {
            question,
            user,
            group,
            number,
        }) => match interior
            .settings
            .access
            .allows(interior.identity.user, user, group)
        {
            true => Ok(give(interior, network, from, &said, number, &question)),
            false => Err(Outcome::NotAllowed),
        },
        Err(InvalidPayload::Version(_)) => Err(Outcome::Version),
        Ok(Request::Locate { .. }) | Err(InvalidPayload::Invalid(_)) => Err(Outcome::Invalid),
    };
    let answer = answer.unwrap_or_else(|outcome| {
        interior.registry.tally.count(outcome);
        let reason = outcome.reason().map_or(0, |RefusedBecause(reason)| reason);
        Answer::Refused { reason }
    });
    let mut responder = network.responder();
    if let Ok(Some((to, bytes))) = responder.answer(said.number, &answer.to_bytes()) {
        let _ = network.endpoint.answer(to, bytes);
    }
}

/// Gives a peer offers; the same again if the first answer was lost.
fn give(
    interior: &Interior,
    network: &Network,
    from: SocketAddr,
    said: &Said,
    number: u64,
    question: &Question,
) -> Answer {
    let mut given = network.given();
    let is_its = |offer: &&GivenOffer| offer.number == number && offer.asker == said.identity;
    let copy = |offer: &GivenOffer| (offer.item.clone(), offer.bytes.clone());
    let before: HashMap<_, _> = given.iter().filter(is_its).map(copy).collect();
    let asker = Asker::Host(from.ip());
    let offers = &interior.offers;
    let answered = offers.answer(question, asker, REPLIES_BYTES_MAX, &before, |replies| {
        Ok::<_, Infallible>(replies.clone())
    });
    let Ok(replies) = answered;
    for (item, reply) in question.items().iter().zip(replies.replies()) {
        if let Reply::Given(bytes) = reply
            && !before.contains_key(item)
        {
            if given.len() == GIVEN_MAX {
                given.pop_front();
            }
            given.push_back(GivenOffer {
                asker: said.identity.clone(),
                number,
                item: item.clone(),
                bytes: bytes.clone(),
            });
        }
    }
    interior.registry.tally.count(match replies.gives_any() {
        true => Outcome::Answered,
        false => Outcome::NotOffered,
    });
    Answer::Answered(replies)
}

/// Links a peer that asked for a link and has proved that it is alive.
fn welcome(
    interior: &Interior,
    network: &Network,
    log: &mut Log,
    from: SocketAddr,
    said: &Said,
    side: &Side,
) -> Result<Answer, Outcome> {
    let peer = peer_of(side);
    // A peer on this host must connect through the kernel, which vouches for its identity.
    let is_elsewhere = side.destination.node != interior.identity.node;
    let is_itself = is_of_host(&said.identity, side.destination.node);
    if !is_itself {
        if let Some(suppressed) = log.peers.line(now_ns()) {
            let node = side.destination.node;
            tracing::warn!(
                %from, identity = ?said.identity, claims = format_args!("{node:08x}"), suppressed,
                "no link for a host that has the key of another name (HAMLYN_KNOWN) than it goes by (HAMLYN_HOST there)"
            );
        }
        return Err(Outcome::NotItsKey);
    }
    if !interior.allows_peer(&peer) || !is_elsewhere {
        return Err(Outcome::NotAllowed);
    }
    let key = PeerKey::of(&side.destination);
    let registry = &interior.registry;
    if let Some(connection) = registry.silent_connection(key, now_ns()) {
        connection.abort(&network.endpoint);
    }
    let is_proved = matches!(said.identity, Identity::Host(_));
    registry.begin_incoming_from_afar(key, is_proved)?;
    let granted = network.grant_link(from, side).and_then(|pending| {
        let own = pending.side(interior.identity, interior.settings.name.clone());
        let link = pending.link(&said.keys, side)?;
        Ok((own, NewLink::remote(peer, link)))
    });
    let entered = granted.and_then(|(own, new_link)| {
        registry.end_incoming(key, new_link, || ())?;
        Ok(Answer::Linked(own))
    });
    entered.map_err(|error| {
        registry.give_up_incoming(key);
        if let Some(suppressed) = log.peers.line(now_ns()) {
            tracing::warn!(%error, suppressed, "no link for a peer of another host");
        }
        Outcome::Resources
    })
}
