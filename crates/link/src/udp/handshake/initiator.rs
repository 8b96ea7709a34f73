//! Whoever asks: one attempt at one association.

use ring::hmac;

use super::super::envelope::{ENVELOPE_BYTES, Kind};
use super::message::{
    ANSWER_BYTES, ASK_BYTES, CODE_BYTES, COOKIE_MESSAGE_BYTES, Codes, HEAD_BYTES, Head, Mode,
    PAYLOAD_BYTES_MAX, answer_code, is_same, put_payload, take_payload,
};
use super::noise::{Exchange, Suite};
use super::{Credentials, Established, HandshakeError, Identity, Unheard, cookie};

/// Until it is asked again for the first time, in nanoseconds; then twice as long each time.
const AGAIN_NS: u64 = 50_000_000;
/// The longest time between two, in nanoseconds.
const AGAIN_NS_MAX: u64 = 2_000_000_000;

/// What a message did.
#[derive(Debug)]
pub enum Taken {
    /// The responder wants its cookie: [`Initiator::poll`] has something to be sent at once.
    Again,
    /// The handshake is complete.
    Established(Box<Established>),
}

/// Asks a responder, again and again, always with the same bytes but for the cookie.
pub struct Initiator {
    mode: Mode,
    codes: Codes,
    datagram: Vec<u8>,
    association: u32,
    /// Taken out when the handshake is complete.
    exchange: Option<Exchange>,
    identity: Identity,
    deadline_ns: u64,
    again_ns: u64,
    attempts: u32,
    /// One cookie is taken for each time it was asked for want of an answer.
    may_take_cookie: bool,
    has_new_cookie: bool,
}

impl core::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Initiator")
            .field("association", &self.association)
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}

impl Initiator {
    /// Asks for an association to which this side gives the number `association`, random and not in use. `host` is whose key is expected,
    /// if hosts have keys. `wall_ms` is the time of day, in milliseconds since 1970.
    pub fn new(
        credentials: &Credentials,
        host: Option<&str>,
        association: u32,
        payload: &[u8],
        now_ns: u64,
        wall_ms: u64,
    ) -> Result<Self, HandshakeError> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            let bytes = payload.len();
            return Err(HandshakeError::Payload { bytes });
        }
        let suite = Suite::new(credentials.clone());
        let mode = suite.mode();
        let responder = suite.expected(host)?;
        let head = Head {
            kind: Kind::Initiation,
            to: 0,
            from: association,
            time_ms: wall_ms,
        };
        let codes = suite.codes(responder.as_ref());
        let mut datagram = vec![0; mode.initiation_bytes()];
        let (ask, shown) = datagram.split_at_mut(mode.initiation_bytes() - 2 * CODE_BYTES);
        let (prologue, body) = ask.split_at_mut(HEAD_BYTES);
        prologue.copy_from_slice(&head.bytes(mode));
        let mut plain = [0; ASK_BYTES];
        put_payload(&mut plain, payload);
        let exchange = suite.ask(prologue, responder.as_ref(), &plain, body)?;
        shown[..CODE_BYTES].copy_from_slice(hmac::sign(&codes.ask, ask).as_ref());
        let identity = exchange.identity(&suite);
        Ok(Self {
            mode,
            codes,
            datagram,
            association,
            identity: identity.ok_or(HandshakeError::NoHost)?,
            exchange: Some(exchange),
            deadline_ns: now_ns,
            again_ns: AGAIN_NS,
            attempts: 0,
            may_take_cookie: false,
            has_new_cookie: false,
        })
    }

    /// By which number this side knows the association.
    pub fn association(&self) -> u32 {
        self.association
    }

    /// How often it was asked. When to give up is the caller's affair.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// When [`Initiator::poll`] is to be called next; nothing when the handshake is complete.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.exchange.as_ref().map(|_| self.deadline_ns)
    }

    /// What is to be sent to the responder now, if anything is.
    pub fn poll(&mut self, now_ns: u64) -> Option<&[u8]> {
        if self.exchange.is_none() || now_ns < self.deadline_ns {
            return None;
        }
        self.may_take_cookie = !core::mem::take(&mut self.has_new_cookie);
        self.deadline_ns = now_ns.saturating_add(self.again_ns);
        self.again_ns = (self.again_ns * 2).min(AGAIN_NS_MAX);
        self.attempts = self.attempts.saturating_add(1);
        Some(&self.datagram)
    }

    /// A datagram came that may be an answer.
    pub fn take(&mut self, now_ns: u64, datagram: &[u8]) -> Result<Taken, Unheard> {
        if self.exchange.is_none() {
            return Err(Unheard::Done);
        }
        if datagram.len() == COOKIE_MESSAGE_BYTES {
            return self.take_cookie(now_ns, datagram);
        }
        if datagram.len() != self.mode.response_bytes() {
            return Err(Unheard::Malformed);
        }
        let head = Head::parse(datagram, self.mode, Kind::Response);
        let head = head.filter(|head| head.to == self.association && head.time_ms == 0);
        let head = head.ok_or(Unheard::Malformed)?;
        let body = self.authentic(datagram)?;
        let mut plain = [0; ANSWER_BYTES];
        let exchange = self.exchange.as_mut().ok_or(Unheard::Done)?;
        let keys = exchange.finish(&body[HEAD_BYTES..], &mut plain)?;
        // From here on the other side has proved that it holds the keys, and nobody else could answer.
        let (number, field) = plain.split_first_chunk().ok_or(Unheard::Malformed)?;
        let payload = take_payload(field).ok_or(Unheard::Malformed)?;
        if u32::from_le_bytes(*number) != head.from {
            return Err(Unheard::Malformed);
        }
        let established = Established {
            keys,
            association: head.from,
            payload: payload.to_vec(),
            identity: self.identity.clone(),
        };
        self.exchange = None;
        Ok(Taken::Established(Box::new(established)))
    }

    /// The bytes before the code, if it is one for what was asked.
    fn authentic<'a>(&self, datagram: &'a [u8]) -> Result<&'a [u8], Unheard> {
        let (body, code) = datagram
            .split_last_chunk::<CODE_BYTES>()
            .ok_or(Unheard::Malformed)?;
        let expected = answer_code(&self.codes.answer, body, self.ask_code());
        if !is_same(&self.codes.answer, &expected, code) {
            return Err(Unheard::Unauthentic);
        }
        Ok(body)
    }

    fn ask_code(&self) -> &[u8] {
        let end = self.datagram.len() - CODE_BYTES;
        &self.datagram[end - CODE_BYTES..end]
    }

    fn take_cookie(&mut self, now_ns: u64, datagram: &[u8]) -> Result<Taken, Unheard> {
        let head = Head {
            kind: Kind::Cookie,
            to: self.association,
            from: 0,
            time_ms: 0,
        };
        if datagram[..ENVELOPE_BYTES] != head.bytes(self.mode)[..ENVELOPE_BYTES] {
            return Err(Unheard::Malformed);
        }
        let body = self.authentic(datagram)?;
        let end = self.datagram.len() - CODE_BYTES;
        let (ask, shown) = self.datagram.split_at_mut(end);
        let show = cookie::show(&body[ENVELOPE_BYTES..], ask);
        // Otherwise who repeats cookies would make us send.
        if !self.may_take_cookie || shown == show.as_ref() {
            return Err(Unheard::Repeated);
        }
        shown.copy_from_slice(show.as_ref());
        self.may_take_cookie = false;
        self.has_new_cookie = true;
        self.deadline_ns = now_ns;
        Ok(Taken::Again)
    }
}
