//! The keeper of the wire: what the attendant does about it, beside the application.
//!
//! It answers strangers at the wire's port. And when the application does not look for a while, because it computes, it takes
//! its place: what was lost is sent again, what came is taken in as far as there is room, peers are answered. As long as the
//! application looks, or sleeps at the socket itself, the keeper leaves the wire alone.

use std::net::SocketAddr;

use hamlyn_link::udp::handshake::{Asked, Heard};
use hamlyn_link::wire::Stranger;
use rustix::event::epoll;
use rustix::fd::OwnedFd;

use super::letter::{Answer, Request, Side};
use super::outside::{Network, is_of_host, peer_of, wall_ms};
use crate::process::clock::now_ns;
use crate::process::counters::Outcome;
use crate::process::registry::{Entrant, PeerKey};
use crate::process::source::Source;
use crate::process::{Interior, random_bits};
use crate::{Errno, HostError, RefusedBecause};

/// How long the application may not look before the keeper does.
const ABSENT_NS: u64 = 10_000_000;
/// How often that is looked at while the application sleeps.
const ASLEEP_NS: u64 = 200_000_000;
/// How late it is at the soonest.
const LATE_NS: u64 = 500_000;
/// Strangers answered at a time.
const STRANGERS_PER_TURN: usize = 16;

/// See the module.
pub(crate) struct Keeper {
    socket: OwnedFd,
    /// Whether the keeper looks after the wire, so that its socket wakes the attendant.
    is_watching: bool,
    /// How often the application had looked.
    looks: u64,
    /// When that is compared.
    due_ns: u64,
    /// When the wire wants something, while the keeper looks after it.
    deadline_ns: Option<u64>,
}

impl Keeper {
    pub(crate) fn new(network: &Network) -> Result<Self, HostError> {
        let socket = network.wire.descriptor();
        Ok(Self {
            socket: socket.map_err(|_| HostError::Descriptors { needed: 1 })?,
            is_watching: false,
            looks: 0,
            due_ns: 0,
            deadline_ns: None,
        })
    }

    /// When [`Keeper::tend`] is to be called though nothing happens.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        match self.is_watching {
            true => self.deadline_ns,
            false => Some(self.due_ns),
        }
    }

    /// To be called when anything happened, and at the deadline.
    pub(crate) fn tend(&mut self, interior: &Interior) {
        let Some(network) = &interior.network else {
            return;
        };
        let wire = &network.wire;
        let looks = wire.looks();
        let is_looking = core::mem::replace(&mut self.looks, looks) != looks;
        let now_ns = now_ns();
        if self.is_watching {
            if is_looking {
                self.watch(interior, false);
                self.due_ns = now_ns + ABSENT_NS;
            } else if wire.look() {
                // The application may sleep, and what it waits for is not at the socket any more.
                interior.registry.alarm().ring();
            }
        } else if wire.is_asleep() {
            // The sleeper wakes for what comes, and for what it knew of; another thread may have sent since.
            let wants_ns = wire.deadline_ns().unwrap_or(u64::MAX);
            if wants_ns <= now_ns && wire.look() {
                interior.registry.alarm().ring();
            }
            self.due_ns = wants_ns.max(now_ns + LATE_NS).min(now_ns + ASLEEP_NS);
        } else if now_ns >= self.due_ns {
            self.due_ns = now_ns + ABSENT_NS;
            if !is_looking {
                self.watch(interior, true);
                wire.look();
            }
        }
        for _ in 0..STRANGERS_PER_TURN {
            let Some(stranger) = wire.next_stranger() else {
                break;
            };
            answer(interior, network, &stranger);
        }
        interior.registry.note_wire_ends();
        self.deadline_ns = wire.deadline_ns();
    }

    fn watch(&mut self, interior: &Interior, watch: bool) {
        let set = interior.registry.watch();
        let changed = match watch {
            true => {
                let readable = epoll::EventFlags::IN;
                epoll::add(set, &self.socket, Source::Wire.data(), readable)
            }
            false => epoll::delete(set, &self.socket),
        };
        // If the system has no room for it, the keeper looks again when it is due.
        if changed.is_ok() {
            self.is_watching = watch;
        }
    }
}

fn answer(interior: &Interior, network: &Network, stranger: &Stranger) {
    let Stranger { from, bytes } = stranger;
    let is_loaded = network.wire.is_crowded();
    let mut responder = network.responder();
    let asked = match responder.take(now_ns(), wall_ms(), *from, bytes, is_loaded) {
        Ok(Heard::Asked(asked)) => asked,
        Ok(Heard::Reply(reply)) => {
            let _ = network.wire.answer(*from, reply);
            return;
        }
        Err(_) => return interior.registry.tally.count(Outcome::Invalid),
    };
    drop(responder);
    let request = Request::from_bytes(asked.payload());
    let outcome = match request {
        Ok(Request::Link(side)) => match welcome(interior, network, *from, asked, &side) {
            Ok(()) => return,
            Err((asked, outcome)) => {
                let reason = outcome.reason().map_or(0, |RefusedBecause(reason)| reason);
                return reply(network, *from, *asked, &Answer::Refused { reason });
            }
        },
        Ok(Request::Ask { item, user, group }) => {
            let access = &interior.settings.access;
            if !access.allows(interior.identity.user, user, group) {
                let RefusedBecause(reason) = RefusedBecause::NOT_ALLOWED;
                return reply(network, *from, *asked, &Answer::Refused { reason });
            }
            let given = interior
                .offers
                .hand_over(&item, |bytes| Ok::<_, Errno>(Answer::Given(bytes.to_vec())));
            let answer = match given {
                Some(Ok(answer)) => answer,
                _ => Answer::Refused {
                    reason: Answer::NOT_OFFERED,
                },
            };
            interior.registry.tally.count(match answer {
                Answer::Given(_) => Outcome::Answered,
                _ => Outcome::NotOffered,
            });
            return reply(network, *from, *asked, &answer);
        }
        Ok(Request::Locate { .. }) | Err(_) => Outcome::Invalid,
    };
    interior.registry.tally.count(outcome);
    let reason = outcome.reason().map_or(0, |RefusedBecause(reason)| reason);
    reply(network, *from, *asked, &Answer::Refused { reason });
}

/// Says something to somebody who gets no link.
fn reply(network: &Network, to: SocketAddr, asked: Asked, answer: &Answer) {
    let Ok(number) = random_bits() else { return };
    let mut responder = network.responder();
    let accepted = responder.accept(now_ns(), asked, number as u32 | 1, &answer.to_bytes());
    if let Ok(accepted) = accepted {
        let _ = network.wire.answer(to, accepted.response);
    }
}

/// Links somebody who asked for it.
fn welcome(
    interior: &Interior,
    network: &Network,
    from: SocketAddr,
    asked: Box<Asked>,
    side: &Side,
) -> Result<(), (Box<Asked>, Outcome)> {
    let peer = peer_of(side);
    // Whoever is on this host comes another way, where the kernel says who it is.
    let is_elsewhere = side.destination.node != interior.identity.node;
    let is_itself = is_of_host(asked.identity(), side.destination.node);
    if !interior.allows_peer(&peer) || !is_itself || !is_elsewhere {
        interior.registry.tally.count(Outcome::NotAllowed);
        return Err((asked, Outcome::NotAllowed));
    }
    let key = PeerKey::of(&side.destination);
    let registry = &interior.registry;
    if let Some(post) = registry.forsaken(key, now_ns()) {
        post.forsake(&network.wire);
    }
    if let Err(outcome) = registry.begin_incoming(key) {
        registry.tally.count(outcome);
        return Err((asked, outcome));
    }
    let prospect = match network.grant_link(from.ip(), side) {
        Ok(prospect) => prospect,
        Err(error) => {
            tracing::warn!(%error, "no link for a peer of another host");
            // It fails only with an entrant.
            let _ = registry.end_incoming(None);
            return Err((asked, Outcome::Resources));
        }
    };
    let own = prospect.side(interior.identity, interior.settings.name.clone());
    let letter = Answer::Linked(own).to_bytes();
    let mut responder = network.responder();
    let accepted = responder.accept(now_ns(), *asked, prospect.number(), &letter);
    let Ok(accepted) = accepted else {
        let _ = registry.end_incoming(None);
        return Ok(());
    };
    let entrant = prospect
        .link(&accepted.established, side)
        .ok()
        .map(|link| Entrant::remote(peer, link));
    // Linked before it is said, so that no frame of the peer finds nobody.
    let is_linked = entrant.is_some();
    if registry.end_incoming(entrant).is_ok() && is_linked {
        let _ = network.wire.answer(from, accepted.response);
    }
    Ok(())
}
