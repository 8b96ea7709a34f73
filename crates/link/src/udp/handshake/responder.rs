//! The responder: one for a socket, for all initiators.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use ring::hmac;

use super::super::packet_header::{Kind, PacketHeader};
use super::super::protection::{RxProtection, TxProtection};
use super::super::randomness::{NoRandom, Randomness, Source};
use super::cookie::{self, CookieKey};
use super::message::{
    CODE_BYTES, COOKIE_MESSAGE_BYTES, Coded, Codes, HEAD_BYTES, Head, MESSAGE_BYTES_MAX, Mode,
    PAYLOAD_BYTES_MAX, answer_code, prologue,
};
use super::noise::Suite;
use super::{Credentials, FRESH_MS, HandshakeError, Identity, Keys, Unheard};
use crate::udp::packet_header::PACKET_HEADER_BYTES;

/// Handshakes that are kept; of more, the oldest is forgotten.
const SESSIONS_MAX: usize = 1_024;
/// For how long: an initiator waits no longer for an answer before it asks again.
const SESSION_NS: u64 = 10_000_000_000;
type Code = [u8; CODE_BYTES];

/// What a message calls for.
#[derive(Debug)]
pub enum Heard<'a> {
    /// These bytes are to be sent to the source.
    Reply(&'a [u8]),
    /// A request of an initiator that has proved that it is alive and receives at the source.
    Said(Box<Said>),
}

/// A request.
#[derive(Debug)]
pub struct Said {
    /// By which number the handshake is known.
    pub number: u32,
    /// The request.
    pub payload: Vec<u8>,
    /// By whom.
    pub identity: Identity,
    /// Keys for a link, if it comes to that.
    pub keys: Keys,
}

/// A handshake, as this side sees it.
struct Session {
    /// Of its initiation.
    code: Code,
    source: SocketAddr,
    /// By which number the initiator knows it.
    peer: u32,
    state: State,
}

enum State {
    /// The initiator was answered, and has still to prove that it is alive.
    Shaken {
        response: Vec<u8>,
        keys: Keys,
        identity: Identity,
    },
    /// It did, with the payload whose datagram ended so.
    Asked {
        end: End,
        tx_protection: Box<TxProtection>,
    },
    /// It was answered with this.
    Answered { end: End, answer: Vec<u8> },
}

/// By which a datagram is known again that was authentic.
type End = [u8; 16];

/// Answers initiators, and stores nothing of those that it has not authenticated.
pub struct Responder {
    suite: Suite,
    mode: Mode,
    codes: Codes,
    /// The one that is asked.
    interface: u64,
    cookie_key: CookieKey,
    sessions: BTreeMap<u32, Session>,
    by_code: BTreeMap<Code, u32>,
    /// Sessions in the order in which they began, and until when they are kept.
    order: VecDeque<(u64, u32)>,
    cookie_message: [u8; COOKIE_MESSAGE_BYTES],
}

impl core::fmt::Debug for Responder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Responder")
            .field("mode", &self.mode)
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}

impl Responder {
    /// Nobody has asked yet. Answers for that interface; 0 is the name service of a host.
    pub fn new(credentials: &Credentials, interface: u64) -> Result<Self, NoRandom> {
        Self::of(
            Suite::new(credentials.clone(), Source::default()),
            interface,
        )
    }

    /// The same, with the random bytes of a simulation.
    pub fn with_randomness(
        randomness: Arc<dyn Randomness>,
        credentials: &Credentials,
        interface: u64,
    ) -> Result<Self, NoRandom> {
        let suite = Suite::new(credentials.clone(), Source::given(randomness));
        Self::of(suite, interface)
    }

    fn of(suite: Suite, interface: u64) -> Result<Self, NoRandom> {
        Ok(Self {
            cookie_key: CookieKey::new(&suite.random)?,
            mode: suite.mode(),
            codes: suite.codes(None),
            suite,
            interface,
            sessions: BTreeMap::new(),
            by_code: BTreeMap::new(),
            order: VecDeque::new(),
            cookie_message: [0; COOKIE_MESSAGE_BYTES],
        })
    }

    /// How many handshakes are kept.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// A datagram came that may be an initiation or a request. `wall_ms` is the time of day, in
    /// milliseconds since 1970; while the host is `loaded` with more of them than it can answer,
    /// only those are answered whose source is proved.
    pub fn take(
        &mut self,
        now_ns: u64,
        wall_ms: u64,
        source: SocketAddr,
        datagram: &[u8],
        loaded: bool,
    ) -> Result<Heard<'_>, Unheard> {
        self.forget(now_ns);
        if let Some(packet_header) = PacketHeader::parse(datagram)
            && packet_header.kind == Kind::Payload
        {
            return self.take_payload(source, packet_header.association, datagram);
        }
        let initiation = |mode: Mode| {
            let is_as_long = datagram.len() == mode.initiation_bytes();
            Head::parse(datagram, mode, Kind::Initiation).filter(|head| is_as_long && head.to == 0)
        };
        let head = initiation(self.mode).ok_or_else(|| {
            match Mode::ALL.into_iter().any(|mode| initiation(mode).is_some()) {
                true => Unheard::OtherSecurity,
                false => Unheard::Malformed,
            }
        })?;
        let (coded, shown) = datagram
            .split_last_chunk::<CODE_BYTES>()
            .ok_or(Unheard::Malformed)?;
        let (ask, code) = coded
            .split_last_chunk::<CODE_BYTES>()
            .ok_or(Unheard::Malformed)?;
        let covered = Coded::new(ask, self.interface);
        hmac::verify(&self.codes.ask, covered.bytes(), code).map_err(|_| Unheard::Unauthentic)?;
        if let Some(number) = self.by_code.get(code) {
            return match self.sessions.get(number) {
                Some(Session {
                    source: known,
                    state: State::Shaken { response, .. },
                    ..
                }) if *known == source => Ok(Heard::Reply(response)),
                _ => Err(Unheard::Stale),
            };
        }
        let is_fresh = head.time_ms.abs_diff(wall_ms) <= FRESH_MS;
        if loaded || !is_fresh || self.sessions.len() > SESSIONS_MAX / 2 {
            let good = self.cookie_key.valid(now_ns, source);
            if !good.iter().any(|good| cookie::is_shown(good, coded, shown)) {
                return Ok(Heard::Reply(self.demand(now_ns, source, &head, code)));
            }
        }
        let (first, body) = ask.split_at(HEAD_BYTES);
        let prologue = prologue(first, self.interface);
        let (exchange, identity) = self.suite.read_initiation(&prologue, body)?;
        let number = self.new_number()?;
        let answer_head = Head {
            kind: Kind::Response,
            to: head.from,
            from: number,
            time_ms: 0,
        };
        let mut response = vec![0; self.mode.response_bytes()];
        let (body, place) = response.split_at_mut(self.mode.response_bytes() - CODE_BYTES);
        body[..HEAD_BYTES].copy_from_slice(&answer_head.bytes(self.mode));
        let keys = exchange.answer(&number.to_le_bytes(), &mut body[HEAD_BYTES..]);
        let keys = keys.map_err(|_| Unheard::Broken)?;
        place.copy_from_slice(answer_code(&self.codes.answer, body, code).as_ref());
        let session = Session {
            code: *code,
            source,
            peer: head.from,
            state: State::Shaken {
                response,
                keys,
                identity,
            },
        };
        match &self.keep(now_ns, number, session).state {
            State::Shaken { response, .. } => Ok(Heard::Reply(response)),
            _ => Err(Unheard::Stale),
        }
    }

    /// A number that no handshake has. Those of links have the highest bit.
    fn new_number(&self) -> Result<u32, NoRandom> {
        loop {
            let number = u32::from_le_bytes(self.suite.random.bytes()?) >> 1 | 1;
            if !self.sessions.contains_key(&number) {
                return Ok(number);
            }
        }
    }

    fn keep(&mut self, now_ns: u64, number: u32, session: Session) -> &Session {
        if self.sessions.len() >= SESSIONS_MAX {
            self.forget_first();
        }
        let until_ns = now_ns.saturating_add(SESSION_NS);
        self.order.push_back((until_ns, number));
        self.by_code.insert(session.code, number);
        self.sessions.entry(number).or_insert(session)
    }

    fn forget_first(&mut self) {
        let first = self.order.pop_front();
        if let Some(session) = first.and_then(|(_, number)| self.sessions.remove(&number)) {
            self.by_code.remove(&session.code);
        }
    }

    /// A request, perhaps not for the first time.
    fn take_payload(
        &mut self,
        source: SocketAddr,
        number: u32,
        datagram: &[u8],
    ) -> Result<Heard<'_>, Unheard> {
        let end = *datagram.last_chunk().ok_or(Unheard::Malformed)?;
        let session = self.sessions.get_mut(&number);
        let session = session.filter(|session| session.source == source);
        let session = session.ok_or(Unheard::Stale)?;
        let State::Shaken { keys, identity, .. } = &session.state else {
            return match &session.state {
                State::Answered { end: known, answer } if *known == end => Ok(Heard::Reply(answer)),
                _ => Err(Unheard::Stale),
            };
        };
        let mut room = [0; MESSAGE_BYTES_MAX];
        let room = room.get_mut(..datagram.len()).ok_or(Unheard::Malformed)?;
        room.copy_from_slice(datagram);
        let mut rx_protection = RxProtection::new(&keys.receive, number);
        let opened = rx_protection.unprotect(room).map_err(|_| Unheard::Broken)?;
        let said = Said {
            number,
            payload: opened.frame.to_vec(),
            identity: identity.clone(),
            keys: keys.of_link(),
        };
        let tx_protection = Box::new(TxProtection::new(&keys.send, session.peer));
        session.state = State::Asked { end, tx_protection };
        Ok(Heard::Said(Box::new(said)))
    }

    /// Answers a request: the message to send, and where. Nothing if the handshake was forgotten
    /// meanwhile.
    pub fn answer(
        &mut self,
        number: u32,
        payload: &[u8],
    ) -> Result<Option<(SocketAddr, &[u8])>, HandshakeError> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            let bytes = payload.len();
            return Err(HandshakeError::Payload { bytes });
        }
        let Some(session) = self.sessions.get_mut(&number) else {
            return Ok(None);
        };
        let State::Asked { end, tx_protection } = &mut session.state else {
            return Ok(None);
        };
        let mut answer = vec![0; payload.len() + tx_protection.overhead_bytes()];
        if tx_protection
            .protect(Kind::Payload, 0, payload, &mut answer)
            .is_err()
        {
            return Ok(None);
        }
        session.state = State::Answered { end: *end, answer };
        Ok(match &session.state {
            State::Answered { answer, .. } => Some((session.source, answer)),
            _ => None,
        })
    }

    /// Work for each message is bounded; what waits longer is only kept longer.
    fn forget(&mut self, now_ns: u64) {
        for _ in 0..2 {
            if self.order.front().is_some_and(|first| first.0 <= now_ns) {
                self.forget_first();
            }
        }
    }

    /// Wants to see a cookie.
    fn demand(&mut self, now_ns: u64, source: SocketAddr, head: &Head, ask_code: &Code) -> &[u8] {
        let head = Head {
            kind: Kind::Cookie,
            to: head.from,
            from: 0,
            time_ms: 0,
        };
        let (body, code) = self
            .cookie_message
            .split_at_mut(PACKET_HEADER_BYTES + CODE_BYTES);
        body[..PACKET_HEADER_BYTES].copy_from_slice(&head.bytes(self.mode)[..PACKET_HEADER_BYTES]);
        body[PACKET_HEADER_BYTES..].copy_from_slice(self.cookie_key.make(now_ns, source).as_ref());
        let answer = answer_code(&self.codes.answer, body, ask_code);
        code.copy_from_slice(answer.as_ref());
        &self.cookie_message
    }
}
