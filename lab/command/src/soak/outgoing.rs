//! What a process of a soak sends to one host: it requests a connection at that host's registration
//! area, gets the other ends of it, and keeps datagrams, tagged writes and a stream under way,
//! until the link is lost or the process is to stop.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use hamlyn::engine::terminus::{Completion, SendHandle};
use hamlyn::host::process::ProcessHost;
use hamlyn::{
    Address, Destination, Manager, SendError, Ticket, Undelivered, Wait, datagram, stream,
    tagged_write,
};

use super::content::{self, Kind};
use super::ends::{
    Answer, Bundle, RECORDS_MAX, REGISTRATION, REGISTRATION_PLACE_BYTES, TAG_PLACE_BYTES, TAGS_MAX,
    process_name, request,
};
use super::orders::{Life, Sent};
use super::worker::is_linked;

/// How long a call that must wait for another host may take; nothing else is done meanwhile.
const CALL: Wait = Wait::millis(200);
/// How long nobody may answer a knock.
const TIMEOUT: Duration = Duration::from_secs(3);
/// How long until the next knock.
const PAUSE: Duration = Duration::from_millis(200);
/// Records sent in one turn.
const RECORDS_PER_TURN: u32 = 16;

/// See the module.
pub(super) struct Outgoing {
    own: Life,
    host: usize,
    /// requests so far.
    round: u16,
    state: State,
    /// Datagrams answered, over all connections.
    pub(super) answered: u64,
}

enum State {
    /// There is nobody, until then at least.
    Away(Instant),
    /// Knocked.
    Knocked {
        inbox: Box<datagram::Receiver>,
        to: Destination,
        since: Instant,
    },
    Connected(Box<Connection>),
    /// The link is gone; what came back over it was not asked for yet.
    Ending(Box<Connection>, String),
}

struct Connection {
    bundle: Bundle,
    to: Destination,
    datagrams: datagram::Sender,
    tags: tagged_write::Sender,
    records: stream::Sender,
    /// Where answers come.
    inbox: datagram::Receiver,
    is_awaiting: bool,
    datagrams_sent: u64,
    /// The last datagram.
    datagram: Option<SendHandle>,
    tags_sent: u64,
    /// Of tags from `known.tags_below` on.
    handles: VecDeque<SendHandle>,
    records_sent: u64,
    /// The latest answer.
    known: Answer,
    datagram_came_back: bool,
    tags_came_back: Vec<u64>,
}

impl Outgoing {
    pub(super) fn new(own: Life, host: usize) -> Self {
        Self {
            own,
            host,
            round: 0,
            state: State::Away(Instant::now()),
            answered: 0,
        }
    }

    /// To whom.
    pub(super) fn host(&self) -> usize {
        self.host
    }

    /// Goes on; whether there was anything to do. A connection that has ended is given out.
    pub(super) fn drive(
        &mut self,
        manager: &Manager<ProcessHost>,
        is_stopping: bool,
    ) -> Result<(bool, Option<Sent>)> {
        match &mut self.state {
            State::Away(until) => {
                if is_stopping || Instant::now() < *until {
                    return Ok((false, None));
                }
                self.round = self.round.wrapping_add(1);
                self.state = match self.request(manager) {
                    Ok(state) => state,
                    // The error may pass.
                    Err(error) => {
                        tracing::debug!(host = self.host, %error, "nobody opens");
                        State::Away(Instant::now() + PAUSE)
                    }
                };
                Ok((true, None))
            }
            State::Knocked { inbox, to, since } => {
                let found = inbox.recv(Wait::Poll)?;
                let bundle = found.map(|it| Bundle::from_bytes(&it)).transpose()?;
                let to = *to;
                if bundle.is_none() && is_linked(manager, &to) && since.elapsed() < TIMEOUT {
                    return Ok((false, None));
                }
                let away = State::Away(Instant::now() + PAUSE);
                let State::Knocked { inbox, .. } = std::mem::replace(&mut self.state, away) else {
                    unreachable!("it was")
                };
                let Some(bundle) = bundle else {
                    drop(inbox);
                    return Ok((true, None));
                };
                match Connection::open(manager, bundle, to, *inbox)? {
                    Ok(connection) => {
                        self.state = State::Connected(Box::new(connection));
                        Ok((true, None))
                    }
                    Err(sent) => Ok((true, Some(sent.of(self.own, self.host)))),
                }
            }
            State::Connected(connection) => {
                let before = connection.known.datagrams;
                let driven = connection.drive(manager, is_stopping);
                self.answered += connection.known.datagrams - before;
                let why = match driven {
                    Ok(moved) if is_linked(manager, &connection.to) => return Ok((moved, None)),
                    Ok(_) => "its link is gone".to_owned(),
                    Err(Failure::Lost(why)) => why,
                    Err(Failure::Fault(error)) => return Err(error),
                };
                let away = State::Away(Instant::now() + PAUSE);
                if let State::Connected(connection) = std::mem::replace(&mut self.state, away) {
                    self.state = State::Ending(connection, why);
                }
                Ok((true, None))
            }
            State::Ending(..) => {
                let away = State::Away(Instant::now() + PAUSE);
                let State::Ending(mut connection, why) = std::mem::replace(&mut self.state, away)
                else {
                    unreachable!("it was")
                };
                connection.note_failed(manager)?;
                let account = connection.account(Some(why)).of(self.own, self.host);
                drop(connection.inbox);
                Ok((true, Some(account)))
            }
        }
    }

    fn request(&mut self, manager: &Manager<ProcessHost>) -> Result<State> {
        let name = format!("h{}/{}", self.host, process_name(self.host));
        let registration = manager
            .session()
            .ask(Address::Name(&name), REGISTRATION, CALL)?;
        let registration = Ticket::from_bytes(&registration)?;
        let sender = tagged_write::Sender::grow(manager, &registration, CALL)?;
        let mut inbox = datagram::Receiver::new(manager, 1_024)?;
        inbox.ready();
        let place = self.own.host as u64 * REGISTRATION_PLACE_BYTES;
        let tag = request(self.own, self.round);
        let said = [&tag.to_le_bytes()[..], &inbox.ticket().to_bytes()].concat();
        if let Err(error) = sender.send(place, &said, tag, CALL) {
            drop(inbox);
            bail!(error);
        }
        Ok(State::Knocked {
            inbox: Box::new(inbox),
            to: registration.destination,
            since: Instant::now(),
        })
    }

    /// Something came back; whether it was this one's.
    pub(super) fn came_back(&mut self, back: &Undelivered) -> bool {
        match &mut self.state {
            State::Connected(connection) | State::Ending(connection, _) => {
                connection.came_back(back)
            }
            _ => false,
        }
    }

    /// Whether all that was sent has been answered, or there is no connection.
    pub(super) fn is_settled(&self) -> bool {
        match &self.state {
            State::Connected(connection) => connection.is_settled(),
            State::Ending(..) => false,
            _ => true,
        }
    }

    /// What there is to be said at the end.
    pub(super) fn account(&self) -> Option<Sent> {
        match &self.state {
            State::Connected(connection) => Some(connection.account(None).of(self.own, self.host)),
            _ => None,
        }
    }
}

/// A connection that could not go on.
enum Failure {
    /// Its link is gone.
    Lost(String),
    /// Something that must not be.
    Fault(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Fault(error)
    }
}

/// Whether it was sent; not if there is no room.
fn is_sent<T>(result: Result<T, SendError>) -> Result<Option<T>, Failure> {
    match result {
        Ok(sent) => Ok(Some(sent)),
        Err(SendError::WouldBlock { .. }) => Ok(None),
        Err(error @ (SendError::PeerLost(_) | SendError::ClosedByReceiver)) => {
            Err(Failure::Lost(error.to_string()))
        }
        Err(error) => Err(Failure::Fault(error.into())),
    }
}

/// A [`Sent`] without who and where.
struct Account(Sent);

impl Account {
    fn of(self, from: Life, host: usize) -> Sent {
        let to = Life {
            host,
            number: self.0.to.number,
        };
        Sent { from, to, ..self.0 }
    }
}

impl Connection {
    /// Its sending ends. Or, if its link is lost already, what there is to be said of it.
    fn open(
        manager: &Manager<ProcessHost>,
        bundle: Bundle,
        to: Destination,
        inbox: datagram::Receiver,
    ) -> Result<Result<Self, Account>> {
        let grown = || -> Result<_> {
            let datagrams = datagram::Sender::grow(manager, &bundle.datagrams, CALL)?;
            let tags = tagged_write::Sender::grow(manager, &bundle.tags, CALL)?;
            let records = stream::Sender::grow(manager, &bundle.records, CALL)?;
            Ok((datagrams, tags, records))
        }();
        let connection = bundle.connection;
        let (datagrams, tags, records) = match grown {
            Ok(ends) => ends,
            Err(error) => {
                drop(inbox);
                let life = Life {
                    host: 0,
                    number: bundle.number,
                };
                return Ok(Err(Account(Sent {
                    connection,
                    from: life,
                    to: life,
                    ended: Some(error.to_string()),
                    datagrams: 0,
                    tags: 0,
                    records: 0,
                    datagram_came_back: false,
                    tags_came_back: Vec::new(),
                })));
            }
        };
        Ok(Ok(Self {
            bundle,
            to,
            datagrams,
            tags,
            records,
            inbox,
            is_awaiting: false,
            datagrams_sent: 0,
            datagram: None,
            tags_sent: 0,
            handles: VecDeque::new(),
            records_sent: 0,
            known: Answer {
                connection,
                datagrams: 0,
                tags_below: 0,
                records: 0,
            },
            datagram_came_back: false,
            tags_came_back: Vec::new(),
        }))
    }

    fn drive(
        &mut self,
        manager: &Manager<ProcessHost>,
        is_stopping: bool,
    ) -> Result<bool, Failure> {
        let mut moved = self.hear(manager)?;
        if !(self.is_awaiting || is_stopping && self.is_settled()) {
            moved |= self.send_datagram(manager)?;
        }
        if is_stopping {
            is_sent(self.records.flush(Wait::Poll))?;
            return Ok(moved);
        }
        moved |= self.send_tags(manager)?;
        moved |= self.send_records(manager)?;
        Ok(moved)
    }

    /// Takes the answer, if it has come.
    fn hear(&mut self, _: &Manager<ProcessHost>) -> Result<bool> {
        if !self.is_awaiting {
            return Ok(false);
        }
        let Some(came) = self.inbox.recv(Wait::Poll)? else {
            return Ok(false);
        };
        let answer = Answer::from_bytes(&came)?;
        let known = self.known;
        ensure!(
            answer.connection == known.connection
                && answer.datagrams == self.datagrams_sent
                && (known.tags_below..=self.tags_sent).contains(&answer.tags_below)
                && (known.records..=self.records_sent).contains(&answer.records),
            "{answer:?} after {known:?}; sent were {} datagrams, {} tags, {} records",
            self.datagrams_sent,
            self.tags_sent,
            self.records_sent
        );
        let taken = (answer.tags_below - known.tags_below) as usize;
        self.handles.drain(..taken);
        self.known = answer;
        self.is_awaiting = false;
        Ok(true)
    }

    fn send_datagram(&mut self, _: &Manager<ProcessHost>) -> Result<bool, Failure> {
        self.inbox.ready();
        let mut data = Vec::new();
        let connection = self.known.connection;
        content::message(connection, Kind::Datagram, self.datagrams_sent, &mut data);
        let reply = self.inbox.ticket();
        let sent = self.datagrams.send_to(0, &data, Some(&reply), Wait::Poll);
        let Some(handle) = is_sent(sent)? else {
            return Ok(false);
        };
        self.datagram = Some(handle);
        self.datagrams_sent += 1;
        self.is_awaiting = true;
        Ok(true)
    }

    fn send_tags(&mut self, _: &Manager<ProcessHost>) -> Result<bool, Failure> {
        let (mut moved, mut data) = (false, Vec::new());
        while self.tags_sent - self.known.tags_below < TAGS_MAX {
            let number = self.tags_sent;
            content::message(self.known.connection, Kind::Tag, number, &mut data);
            let place = number % TAGS_MAX * TAG_PLACE_BYTES;
            let sent = self.tags.send(place, &data, number, Wait::Poll);
            let Some(handle) = is_sent(sent)? else {
                break;
            };
            self.handles.push_back(handle);
            self.tags_sent += 1;
            moved = true;
        }
        Ok(moved)
    }

    fn send_records(&mut self, _: &Manager<ProcessHost>) -> Result<bool, Failure> {
        let (mut moved, mut data) = (false, Vec::new());
        for _ in 0..RECORDS_PER_TURN {
            if self.records_sent - self.known.records >= RECORDS_MAX {
                break;
            }
            let number = self.records_sent;
            content::message(self.known.connection, Kind::Record, number, &mut data);
            let sent = self.records.send(&data, Wait::Poll);
            if is_sent(sent)?.is_none() {
                break;
            }
            self.records_sent += 1;
            moved = true;
        }
        Ok(moved)
    }

    fn is_settled(&self) -> bool {
        !self.is_awaiting
            && self.known.tags_below == self.tags_sent
            && self.known.records == self.records_sent
    }

    fn came_back(&mut self, back: &Undelivered) -> bool {
        if back.to.is_none_or(|to| !to.is_same(&self.to)) {
            return false;
        }
        if back.slot == self.bundle.tags.slot {
            self.tags_came_back.push(back.word);
        } else if back.slot == self.bundle.datagrams.slot {
            self.datagram_came_back = true;
        } else {
            return false;
        }
        true
    }

    /// The link is gone: the messages queued for it were never handed over. Behind a message to
    /// another host that finds no room it is still in the queue, and fails when its turn comes.
    fn note_failed(&mut self, manager: &Manager<ProcessHost>) -> Result<()> {
        if let Some(handle) = self.datagram {
            let completion = manager.session().completion(handle)?;
            self.datagram_came_back |= completion != Completion::Sent;
        }
        for (number, handle) in (self.known.tags_below..).zip(&self.handles) {
            if manager.session().completion(*handle)? != Completion::Sent {
                self.tags_came_back.push(number);
            }
        }
        self.tags_came_back.sort_unstable();
        self.tags_came_back.dedup();
        Ok(())
    }

    fn account(&self, ended: Option<String>) -> Account {
        let life = Life {
            host: 0,
            number: self.bundle.number,
        };
        Account(Sent {
            connection: self.known.connection,
            from: life,
            to: life,
            ended,
            datagrams: self.datagrams_sent,
            tags: self.tags_sent,
            records: self.records_sent,
            datagram_came_back: self.datagram_came_back,
            tags_came_back: self.tags_came_back.clone(),
        })
    }
}
