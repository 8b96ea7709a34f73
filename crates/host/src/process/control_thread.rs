//! The control thread: one thread per interface that accepts, shakes hands and
//! notices deaths, while the application computes (`Hamlyn 3.1`, `6.3`).
//!
//! It sleeps in one `epoll` on everything at once and never waits for anybody:
//! a peer that stalls costs a place among the handshakes until its time is up, and nothing else.

use hamlyn_ring::duplex::LineOrder;

use super::Interior;
use super::clock::{now_ns, until};
use super::codec::{Message, NotAMessage, Offer, REPLIES_BYTES_MAX};
use super::counters::{LogBudget, Outcome};
use super::credentials::Credentials;
use super::disposal::ReceivedFile;
use super::exchange::{self, ReceiveError};
use super::grant::{LentFile, Unlinkable};
use super::registry::{NewLink, PeerKey};
use super::source::Source;
use crate::network::endpoint_driver::EndpointDriver;
use crate::network::name_service::ENDPOINT_ITEM;
use crate::question::Question;
use crate::{Errno, HostError, RefusedBecause};
use hamlyn_ring::forks::Uninherited;
use hamlyn_ring::region::RegionFiles;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::net::{SocketFlags, accept_with};
use std::collections::HashMap;
use std::sync::Arc;

/// Connections accepted from a listener before other events have their turn.
const ACCEPTED_PER_TURN: u32 = 16;
/// Events taken from the kernel at a time.
const EVENTS_PER_TURN: usize = 64;
/// How long no connection is accepted after the system had no room for one.
const PAUSE_NS: u64 = 50_000_000;

/// A handshake that a peer began.
struct Handshake {
    socket: Arc<Uninherited>,
    credentials: Credentials,
    /// The peer may not be linked, but may ask for the address of the UDP endpoint: the name
    /// service of this host asks all processes, whose users may differ.
    only_seeks: bool,
    deadline_ns: u64,
    /// The link that the peer was welcomed to; it has yet to say that it has mapped our memory.
    welcomed: Option<Box<Welcomed>>,
}

/// True if nothing is asked for but the address of the UDP endpoint.
fn seeks_endpoint(question: &Question) -> bool {
    matches!(question.items(), [item] if item.as_str() == ENDPOINT_ITEM)
}

/// A link that is made, but not entered.
struct Welcomed {
    key: PeerKey,
    new_link: NewLink,
    file: LentFile,
}

/// See the module.
pub(super) struct ControlThread {
    interior: Arc<Interior>,
    listeners: Vec<Uninherited>,
    handshakes: HashMap<u64, Handshake>,
    handshakes_begun: u64,
    paused_until_ns: Option<u64>,
    log: LogBudget,
    /// The endpoint driver, if this interface is on the network.
    endpoint_driver: Option<EndpointDriver>,
}

impl ControlThread {
    /// A control thread for these listening sockets.
    pub(super) fn new(
        interior: Arc<Interior>,
        listeners: Vec<Uninherited>,
    ) -> Result<Self, HostError> {
        let control_thread = Self {
            endpoint_driver: interior.network.as_ref().map(|_| EndpointDriver::default()),
            interior,
            listeners,
            handshakes: HashMap::new(),
            handshakes_begun: 0,
            paused_until_ns: None,
            log: LogBudget::default(),
        };
        control_thread
            .listen()
            .map_err(|errno| HostError::system("epoll_ctl", 0, errno))?;
        Ok(control_thread)
    }

    fn listen(&self) -> rustix::io::Result<()> {
        for (place, listener) in self.listeners.iter().enumerate() {
            let data = Source::Listener(place as u64).data();
            epoll::add(
                self.interior.registry.watch(),
                listener,
                data,
                epoll::EventFlags::IN,
            )?;
        }
        Ok(())
    }

    /// Works until the owner closes the registry.
    pub(super) fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS_PER_TURN);
        loop {
            let timeout = self.next_deadline_ns().map(until);
            let watch = self.interior.registry.watch();
            match epoll::wait(watch, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => {
                    tracing::error!(%errno, "the control thread cannot wait: no more links, and no news of deaths");
                    return;
                }
            }
            for event in events.drain(..) {
                match Source::of(event.data) {
                    Some(Source::Command) => {
                        self.interior.registry.take_command();
                        if self.interior.registry.is_stopping() {
                            return;
                        }
                    }
                    Some(Source::Listener(place)) => self.accept(place),
                    Some(Source::Handshake(number)) => self.proceed(number),
                    Some(Source::Control(token)) => self.interior.registry.peer_closed(token),
                    Some(Source::Process(token)) => self.interior.registry.process_ended(token),
                    // It is looked at below.
                    Some(Source::Udp) | None => {}
                }
            }
            if let Some(endpoint_driver) = &mut self.endpoint_driver {
                endpoint_driver.drive(&self.interior);
            }
            self.drop_the_stalled();
            self.resume();
        }
    }

    /// When something must be done though nothing happens.
    fn next_deadline_ns(&self) -> Option<u64> {
        let handshakes = self
            .handshakes
            .values()
            .map(|handshake| handshake.deadline_ns);
        let verdict = self.interior.registry.report_due_losses();
        let endpoint_driver = self
            .endpoint_driver
            .as_ref()
            .and_then(EndpointDriver::deadline_ns);
        let others = self.paused_until_ns.into_iter().chain(endpoint_driver);
        handshakes.chain(verdict).chain(others).min()
    }

    fn drop_the_stalled(&mut self) {
        if self.handshakes.is_empty() {
            return;
        }
        let now_ns = now_ns();
        let is_late = |_: &u64, handshake: &mut Handshake| handshake.deadline_ns <= now_ns;
        let late: Vec<_> = self.handshakes.extract_if(is_late).collect();
        for (_, handshake) in late {
            self.forget(handshake.welcomed);
            self.note(Outcome::Stalled, None);
        }
    }

    /// Out of descriptors: a listener would report the same connection for ever.
    fn pause(&mut self) {
        for listener in &self.listeners {
            let _ = epoll::delete(self.interior.registry.watch(), listener);
        }
        self.paused_until_ns = Some(now_ns().saturating_add(PAUSE_NS));
        self.note(Outcome::Resources, None);
    }

    fn resume(&mut self) {
        if self
            .paused_until_ns
            .is_some_and(|until_ns| until_ns <= now_ns())
        {
            self.paused_until_ns = match self.listen() {
                Ok(()) | Err(rustix::io::Errno::EXIST) => None,
                Err(_) => Some(now_ns().saturating_add(PAUSE_NS)),
            };
        }
    }

    fn accept(&mut self, place: u64) {
        for _ in 0..ACCEPTED_PER_TURN {
            let Some(listener) = self.listeners.get(place as usize) else {
                return;
            };
            match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => self.greet(socket.into()),
                Err(rustix::io::Errno::AGAIN) => return,
                Err(
                    rustix::io::Errno::MFILE
                    | rustix::io::Errno::NFILE
                    | rustix::io::Errno::NOMEM
                    | rustix::io::Errno::NOBUFS,
                ) => return self.pause(),
                // The peer that this was about is gone.
                Err(_) => {}
            }
        }
    }

    /// Judges who connects, says who we are, and gives them a place among the handshakes.
    fn greet(&mut self, socket: Uninherited) {
        let Ok(credentials) = Credentials::of(&socket, &self.interior.settings.numbers) else {
            return self.note(Outcome::PeerClosed, None);
        };
        let interior = &self.interior;
        let only_seeks = !interior.allows(&credentials);
        if only_seeks && interior.network.is_none() {
            return self.refuse(&socket, &credentials, Outcome::NotAllowed);
        }
        let of_user = |handshake: &&Handshake| handshake.credentials.user == credentials.user;
        let of_seekers = |handshake: &&Handshake| only_seeks && handshake.only_seeks;
        let handshakes_max = interior.settings.handshakes_max;
        if self.handshakes.len() >= handshakes_max
            || self.handshakes.values().filter(of_user).count() >= handshakes_max / 2
            || self.handshakes.values().filter(of_seekers).count() >= handshakes_max / 4
            || interior.disposal.is_saturated(credentials.user)
        {
            return self.refuse(&socket, &credentials, Outcome::Busy);
        }
        let interface = interior.identity.interface;
        if exchange::send(&socket, &Message::Greeting { interface }, &[]).is_err() {
            return self.note(Outcome::PeerClosed, Some(&credentials));
        }
        self.handshakes_begun += 1;
        let number = self.handshakes_begun;
        let watched = epoll::add(
            interior.registry.watch(),
            &socket,
            Source::Handshake(number).data(),
            epoll::EventFlags::IN | epoll::EventFlags::RDHUP,
        );
        if watched.is_err() {
            return self.refuse(&socket, &credentials, Outcome::Resources);
        }
        let timeout_ns = interior.settings.handshake_timeout_ns;
        let handshake = Handshake {
            socket: Arc::new(socket),
            credentials,
            only_seeks,
            deadline_ns: now_ns().saturating_add(timeout_ns),
            welcomed: None,
        };
        self.handshakes.insert(number, handshake);
    }

    /// A message has come: a hello, word that our memory is mapped, an ask, or invalid bytes.
    fn proceed(&mut self, number: u64) {
        let Some(mut handshake) = self.handshakes.remove(&number) else {
            return;
        };
        let mut arrived = match exchange::receive(
            &handshake.socket,
            handshake.credentials.user,
            &self.interior.disposal,
        ) {
            Err(ReceiveError::NotYet) => {
                self.handshakes.insert(number, handshake);
                return;
            }
            arrived => arrived,
        };
        if let (Ok(arrived), None, false) =
            (&mut arrived, &handshake.welcomed, handshake.only_seeks)
            && let Message::Hello(offer) = &arrived.message
        {
            let descriptors = std::mem::take(&mut arrived.descriptors);
            match self.welcome(
                &handshake.socket,
                &handshake.credentials,
                offer,
                descriptors,
            ) {
                Ok(welcomed) => {
                    handshake.welcomed = Some(Box::new(welcomed));
                    self.handshakes.insert(number, handshake);
                }
                Err(outcome) => {
                    let _ = epoll::delete(self.interior.registry.watch(), &handshake.socket);
                    self.refuse(&handshake.socket, &handshake.credentials, outcome);
                }
            }
            return;
        }
        let Handshake {
            socket,
            credentials,
            only_seeks,
            welcomed,
            ..
        } = handshake;
        let _ = epoll::delete(self.interior.registry.watch(), &socket);
        if let Some(welcomed) = welcomed {
            let outcome = match arrived {
                Ok(arrived) if arrived.message == Message::Mapped => {
                    match self.enter(&socket, *welcomed) {
                        Ok(()) => return,
                        Err(_) => Outcome::Resources,
                    }
                }
                arrived => {
                    self.forget(Some(welcomed));
                    match arrived {
                        Err(ReceiveError::PeerClosed) => Outcome::PeerClosed,
                        _ => Outcome::Invalid,
                    }
                }
            };
            return self.refuse(&socket, &credentials, outcome);
        }
        let outcome = match arrived {
            Ok(arrived) => match arrived.message {
                Message::Ask(question) if !only_seeks || seeks_endpoint(&question) => {
                    return self.answer(&socket, &credentials, &question);
                }
                _ if only_seeks => Outcome::NotAllowed,
                Message::Fetch { interface, secret } => {
                    return self.share(&socket, &credentials, interface, secret);
                }
                _ => Outcome::Invalid,
            },
            Err(ReceiveError::NotAMessage(NotAMessage::Version(_))) => Outcome::Version,
            Err(ReceiveError::NotAMessage(NotAMessage::Invalid(_))) => Outcome::Invalid,
            Err(ReceiveError::PeerClosed) => {
                return self.note(Outcome::PeerClosed, Some(&credentials));
            }
            Err(
                ReceiveError::OutOfDescriptors | ReceiveError::System(_) | ReceiveError::NotYet,
            ) => Outcome::Resources,
        };
        self.refuse(&socket, &credentials, outcome);
    }

    /// Answers an ask. Offers that cannot be sent stay where they are.
    fn answer(&mut self, socket: &Uninherited, credentials: &Credentials, question: &Question) {
        let (asker, before) = (credentials.asker(), HashMap::new());
        let offers = &self.interior.offers;
        let answered = offers.answer(question, asker, REPLIES_BYTES_MAX, &before, |replies| {
            exchange::send(socket, &Message::Answer(replies.clone()), &[])?;
            Ok::<_, Errno>(replies.gives_any())
        });
        let outcome = match answered {
            Ok(true) => Outcome::Answered,
            Ok(false) => Outcome::NotOffered,
            Err(_) => Outcome::PeerClosed,
        };
        self.note(outcome, Some(credentials));
    }

    /// Hands over a region that is shared with the asker.
    fn share(
        &mut self,
        socket: &Uninherited,
        credentials: &Credentials,
        interface: u64,
        secret: u64,
    ) {
        let send = |files: &RegionFiles| {
            let length_bytes = files.length_bytes();
            exchange::send(
                socket,
                &Message::Region { length_bytes },
                &files.descriptors(),
            )
        };
        let Interior {
            broker, registry, ..
        } = &*self.interior;
        let process = credentials.process;
        let is_linked = |key| registry.is_linked(key, process);
        let given = broker.hand_over(secret, interface, credentials, is_linked, send);
        let (outcome, sent) = match given {
            Some(sent) => (Outcome::Shared, sent),
            None => {
                let sent = exchange::send(socket, &Message::NotShared, &[]);
                (Outcome::NotShared, sent)
            }
        };
        let outcome = sent.map_or(Outcome::PeerClosed, |()| outcome);
        self.note(outcome, Some(credentials));
    }

    /// Answers a hello, and makes the link. To be followed by [`ControlThread::enter`] or
    /// [`ControlThread::forget`].
    fn welcome(
        &self,
        socket: &Arc<Uninherited>,
        credentials: &Credentials,
        offer: &Offer,
        descriptors: Vec<ReceivedFile>,
    ) -> Result<Welcomed, Outcome> {
        let registry = &self.interior.registry;
        let key = PeerKey::neighbour(offer.interface, credentials.user);
        registry.begin_incoming(key)?;
        match self.make(socket, credentials, offer, descriptors) {
            Ok((new_link, file)) => Ok(Welcomed {
                key,
                new_link,
                file,
            }),
            Err(outcome) => {
                registry.give_up_incoming(key);
                Err(outcome)
            }
        }
    }

    /// Both sides have mapped what they need: seals our memory, and enters the link.
    fn enter(&self, socket: &Uninherited, welcomed: Welcomed) -> Result<(), HostError> {
        let Welcomed {
            key,
            new_link,
            file,
        } = welcomed;
        let registry = &self.interior.registry;
        if let Err(error) = file.seal() {
            registry.give_up_incoming(key);
            return Err(error);
        }
        registry.end_incoming(key, new_link, || {
            // If it cannot be told, it is gone, and the link is lost.
            let _ = exchange::send(socket, &Message::Sealed, &[]);
        })
    }

    /// The peer has not said that it has mapped our memory, and does not get the link.
    fn forget(&self, welcomed: Option<Box<Welcomed>>) {
        if let Some(welcomed) = welcomed {
            self.interior.registry.give_up_incoming(welcomed.key);
            // Its ring may have many pages, and we the last descriptor of it.
            let user = welcomed.key.user;
            self.interior.disposal.drop_aside(user, welcomed.new_link);
        }
    }

    fn make(
        &self,
        socket: &Arc<Uninherited>,
        credentials: &Credentials,
        offer: &Offer,
        descriptors: Vec<ReceivedFile>,
    ) -> Result<(NewLink, LentFile), Outcome> {
        let lender = &self.interior.lender;
        let (lent, file) = lender.lend().map_err(|_| Outcome::Resources)?;
        let welcome = Message::Welcome(lender.offer(&lent));
        let link = lender
            .join(lent, offer, descriptors, socket, LineOrder::Second)
            .map_err(|error| match error {
                Unlinkable::Invalid(_) => Outcome::Invalid,
                Unlinkable::Host(_) => Outcome::Resources,
            })?;
        exchange::send(socket, &welcome, &lender.descriptors(&file))
            .map_err(|Errno(_)| Outcome::PeerClosed)?;
        let process = credentials.open_process(socket);
        let peer = credentials.peer(offer);
        Ok((
            NewLink::local(peer, Arc::clone(socket), process, link),
            file,
        ))
    }

    /// Tells the peer why it is refused. Dropping the socket does the rest.
    fn refuse(&mut self, socket: &Uninherited, credentials: &Credentials, outcome: Outcome) {
        self.note(outcome, Some(credentials));
        if let Some(RefusedBecause(reason)) = outcome.reason() {
            // If it cannot be told, it sees the end of the socket.
            let _ = exchange::send(socket, &Message::Refusal { reason }, &[]);
        }
    }

    fn note(&mut self, outcome: Outcome, credentials: Option<&Credentials>) {
        self.interior.registry.tally.count(outcome);
        // These happen to correct peers, too.
        if matches!(
            outcome,
            Outcome::Answered
                | Outcome::NotOffered
                | Outcome::Shared
                | Outcome::Simultaneous
                | Outcome::Busy
        ) {
            return;
        }
        if let Some(suppressed) = self.log.line(now_ns()) {
            let user = credentials.map(|credentials| credentials.user);
            let process = credentials.map(|credentials| credentials.process);
            tracing::warn!(?outcome, user, process, suppressed, "no link was made");
        }
    }
}
