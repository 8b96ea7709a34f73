//! Questions to other hosts: each is a handshake with a question in it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use hamlyn_engine::limits::{FRAME_BYTES_MAX, FRAME_BYTES_MIN};
use hamlyn_link::udp::handshake::{Answered, Initiator};
use hamlyn_link::udp::socket::{Socket, SocketSettings};
use hamlyn_link::udp_endpoint::UdpLink;

use super::{
    DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_USUAL, Found, NAME_SERVICE_NS, Network, PendingConnection,
    RemoteTarget, Unanswered, is_of_host, lock, peer_of, wall_ms, with_port,
};
use crate::network::connector::{Course, PortOf, connect};
use crate::network::handshake_payload::{
    Answer, InvalidPayload, QUESTION_BYTES_MAX, Request, Side, Sought, VERSION,
};
use crate::network::hosts::{BadAddress, is_ambiguous};
use crate::process::clock::now_ns;
use crate::process::name::Name;
use crate::process::numbers::Numbers;
use crate::process::random_bits;
use crate::question::Question;
use crate::{ConnectError, Destination, HostError, Peer, RefusedBecause};

impl Network {
    /// Asks the name services of a host for an interface.
    pub(crate) fn find(
        &self,
        remote: &RemoteTarget,
        deadline_ns: u64,
    ) -> Result<Found, Unanswered> {
        let request = Request::Locate {
            namespace: self.namespace.clone(),
            sought: remote.sought.clone(),
        };
        let mut why = None;
        for (number, &name_service) in remote.name_services.iter().enumerate() {
            if is_ambiguous(&name_service) {
                why.get_or_insert(Unanswered::Failed(ConnectError::Handshake {
                    to: name_service.to_string(),
                    reason: BadAddress::NoScope.to_string(),
                }));
                continue;
            }
            // An address that nobody answers at must not use up the time of the next.
            let is_last = number + 1 == remote.name_services.len();
            let until_ns = match is_last {
                true => deadline_ns,
                false => deadline_ns.min(now_ns().saturating_add(NAME_SERVICE_NS)),
            };
            match self.request_of(name_service, &remote.host, 0, &request, until_ns) {
                Ok(Answer::Located {
                    interface,
                    node,
                    user,
                    port,
                }) => {
                    if !self.is_called(&remote.host, node) {
                        let host = remote.host.clone();
                        return Err(Unanswered::Failed(ConnectError::OtherName { host }));
                    }
                    return Ok(Found {
                        at: with_port(name_service, port),
                        who: Destination {
                            node,
                            user,
                            interface,
                        },
                    });
                }
                // Nobody knows yet.
                Ok(Answer::Refused { reason })
                    if RefusedBecause(reason) == RefusedBecause::BUSY =>
                {
                    why = Some(Unanswered::Absent);
                }
                Ok(Answer::Refused { .. }) => return Err(Unanswered::Gone),
                Ok(_) => return Err(Unanswered::Failed(remote.invalid())),
                // Somebody may still come where nobody was; a way that there is not, hardly.
                Err(Unanswered::Failed(_) | Unanswered::NoRoute(..)) if why.is_some() => {}
                Err(error) => why = Some(error),
            }
        }
        Err(why.unwrap_or(Unanswered::Absent))
    }

    /// Whether a program answers as a name service at this host's own address, within so long.
    /// True if nobody can ask.
    pub(crate) fn is_served_here(&self, at: SocketAddr, wait_ns: u64) -> bool {
        let here: Vec<SocketAddr> = match at.ip().is_unspecified() {
            true => vec![
                (Ipv4Addr::LOCALHOST, at.port()).into(),
                (Ipv6Addr::LOCALHOST, at.port()).into(),
            ],
            false => vec![at],
        };
        let request = Request::Locate {
            namespace: self.namespace.clone(),
            sought: Sought::Interface(0),
        };
        here.into_iter().any(|to| {
            let deadline_ns = now_ns().saturating_add(wait_ns);
            let answer = self.request_of(to, self.host.as_str(), 0, &request, deadline_ns);
            match answer {
                Ok(_) | Err(Unanswered::Late | Unanswered::Gone) => true,
                // The own key need not be in the list.
                Err(Unanswered::Failed(ConnectError::Handshake { .. })) => true,
                Err(_) => false,
            }
        })
    }

    /// Asks an interface for what it offers under the first of these items, at least one. Items
    /// whose last question got no answer are asked for by its number again.
    pub(crate) fn ask<'a>(
        &self,
        found: &Found,
        remote: &RemoteTarget,
        items: impl Iterator<Item = &'a Name>,
        deadline_ns: u64,
    ) -> Result<(Question, Answer), Unanswered> {
        let (question, number) = self.question(remote, items)?;
        let numbers = Numbers::here();
        let request = Request::Ask {
            question: question.clone(),
            user: numbers.own_user(),
            group: numbers.own_group(),
            number,
        };
        let interface = found.who.interface;
        let answer = self.request_of(found.at, &remote.host, interface, &request, deadline_ns);
        let (mut lost, to) = (lock(&self.lost), &remote.shown);
        let answered = match &answer {
            Ok(Answer::Answered(replies)) => replies.replies().len(),
            Ok(_) => question.items().len(),
            Err(_) => 0,
        };
        for item in question.items().iter().take(answered) {
            lost.forget(to, item);
        }
        if matches!(answer, Err(Unanswered::Late | Unanswered::Silent(_))) {
            for item in question.items() {
                lost.note(to, item, number);
            }
        }
        Ok((question, answer?))
    }

    /// A question for the first of these items that have one number: that of their last question,
    /// or a new one.
    fn question<'a>(
        &self,
        remote: &RemoteTarget,
        items: impl Iterator<Item = &'a Name>,
    ) -> Result<(Question, u64), HostError> {
        let lost = lock(&self.lost);
        let number_of = |item: &Name| lost.number_of(&remote.shown, item);
        let mut items = items.peekable();
        let number = items.peek().and_then(|item| number_of(item));
        let alike = items.take_while(|item| number_of(item) == number);
        let question = Question::for_first(alike, QUESTION_BYTES_MAX).expect("an item is wanted");
        let number = match number {
            Some(number) => number,
            None => random_bits()?,
        };
        Ok((question, number))
    }

    /// Sends a request that needs no link to an interface, or to the name service of its host (0),
    /// and returns the answer.
    fn request_of(
        &self,
        to: SocketAddr,
        host: &str,
        interface: u64,
        request: &Request,
        deadline_ns: u64,
    ) -> Result<Answer, Unanswered> {
        let answered = self.handshake(to, host, interface, request, deadline_ns)?;
        let answer = self.read(&answered, to)?;
        match answer {
            // Each host speaks for itself.
            Answer::Located { node, .. } if !is_of_host(&answered.identity, node) => {
                Err(Unanswered::Failed(ConnectError::Invalid {
                    to: to.to_string(),
                    what: "the list (HAMLYN_KNOWN) has its key under another name than it calls itself (HAMLYN_HOST there)",
                }))
            }
            answer => Ok(answer),
        }
    }

    fn read(&self, answered: &Answered, to: SocketAddr) -> Result<Answer, Unanswered> {
        Answer::from_bytes(&answered.payload).map_err(|why| {
            let to = to.to_string();
            Unanswered::Failed(match why {
                InvalidPayload::Version(theirs) => ConnectError::Version {
                    to,
                    theirs: theirs.into(),
                    ours: VERSION.into(),
                },
                InvalidPayload::Invalid(_) => ConnectError::Invalid {
                    to,
                    what: "its handshake payload cannot be read",
                },
            })
        })
    }

    /// Shakes hands and sends a request.
    fn handshake(
        &self,
        to: SocketAddr,
        host: &str,
        interface: u64,
        request: &Request,
        deadline_ns: u64,
    ) -> Result<Answered, Unanswered> {
        let payload = request.to_bytes();
        let begin = || {
            let (now_ns, wall_ms) = (now_ns(), wall_ms());
            let host = Some(host);
            Initiator::new(
                &self.credentials,
                host,
                interface,
                &payload,
                now_ns,
                wall_ms,
            )
            .map_err(|error| ConnectError::Handshake {
                to: to.to_string(),
                reason: error.to_string(),
            })
        };
        let course = Course {
            own: self.own_for(to),
            to,
            port_of: match interface {
                0 => PortOf::Any,
                _ => PortOf::One,
            },
            deadline_ns,
        };
        connect(&self.endpoint, &course, begin)
    }

    /// Prepares a connection to the interface that receives at that address.
    pub(crate) fn pending_connection(
        &self,
        to: SocketAddr,
    ) -> Result<PendingConnection<'_>, HostError> {
        let settings = SocketSettings::default();
        // From the port at which we take frames, if the system lets us: then one port is enough for
        // a firewall.
        let mut sockets = Vec::from_iter(self.endpoint.socket_to(to, &settings).ok().flatten());
        while sockets.len() < usize::from(self.options.paths.max(1)) {
            let mut socket = Socket::bind(self.own_for(to), &settings)?;
            socket.connect(to)?;
            sockets.push(socket);
        }
        let number = self.endpoint.reserve(random_bits()? as u32);
        let number = number.ok_or(HostError::LinksFull { allowed: 1 << 16 })?;
        let route = sockets.first().and_then(Socket::route_datagram_bytes);
        let datagram_bytes = route
            .unwrap_or(DATAGRAM_BYTES_USUAL)
            .min(DATAGRAM_BYTES_MAX);
        let frame_bytes =
            datagram_bytes.saturating_sub(hamlyn_link::udp::protection::OVERHEAD_BYTES_MAX);
        Ok(PendingConnection {
            network: self,
            number,
            sockets,
            frame_bytes: frame_bytes.clamp(FRAME_BYTES_MIN, FRAME_BYTES_MAX),
            is_taken: false,
        })
    }

    /// Asks for a link.
    pub(crate) fn ask_link(
        &self,
        found: &Found,
        remote: &RemoteTarget,
        own: impl FnOnce(&PendingConnection<'_>) -> Side,
        deadline_ns: u64,
    ) -> Result<Result<(Peer, UdpLink), RefusedBecause>, Unanswered> {
        let pending = self.pending_connection(found.at)?;
        let request = Request::Link(own(&pending));
        let (host, interface) = (&remote.host, found.who.interface);
        let answered = self.handshake(found.at, host, interface, &request, deadline_ns)?;
        let side = match self.read(&answered, found.at)? {
            Answer::Linked(side) => side,
            Answer::Refused { reason } => return Ok(Err(RefusedBecause(reason))),
            _ => return Err(Unanswered::Failed(remote.invalid())),
        };
        let is_expected = side.destination == found.who
            && remote
                .destination
                .is_none_or(|wanted| wanted == side.destination)
            && is_of_host(&answered.identity, side.destination.node);
        if !is_expected {
            return Err(Unanswered::Failed(remote.invalid()));
        }
        self.cache_address(&remote.host, side.destination.node, found.at);
        let peer = peer_of(&side);
        let link = pending.link(&answered.keys, &side)?;
        Ok(Ok((peer, link)))
    }

    /// Prepares a connection for a peer that asks for a link from that address, if there is room.
    pub(crate) fn grant_link(
        &self,
        from: SocketAddr,
        side: &Side,
    ) -> Result<PendingConnection<'_>, HostError> {
        let mut pending = self.pending_connection(with_port(from, side.port))?;
        pending.frame_bytes = pending.frame_bytes.min(side.frame_bytes as usize);
        Ok(pending)
    }
}
