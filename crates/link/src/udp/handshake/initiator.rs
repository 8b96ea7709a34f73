//! The initiator of a handshake: one request and its answer.

use ring::hmac;

use std::sync::Arc;

use super::super::key_file::PublicKey;
use super::super::packet_header::{Kind, PACKET_HEADER_BYTES};
use super::super::protection::{RxProtection, TxProtection};
use super::super::randomness::{Randomness, Source};
use super::message::{
    CODE_BYTES, COOKIE_MESSAGE_BYTES, Coded, Codes, HEAD_BYTES, Head, MESSAGE_BYTES_MAX, Mode,
    PAYLOAD_BYTES_MAX, answer_code, is_same, prologue,
};
use super::noise::{Exchange, Suite};
use super::{Answered, Credentials, HandshakeError, Keys, Unheard, cookie};

/// Until it is asked again for the first time, in nanoseconds; then twice as long each time.
const AGAIN_NS: u64 = 50_000_000;
/// The longest time between two, in nanoseconds.
const AGAIN_NS_MAX: u64 = 500_000_000;
/// So often the same is said in vain; then all begins anew. A responder may have forgotten it, or
/// have to keep silent for ever.
const IN_VAIN_MAX: u32 = 3;

/// What a message did.
#[derive(Debug)]
pub enum Taken {
    /// [`Initiator::poll`] has something to be sent at once.
    Again,
    /// The request is answered.
    Answered(Box<Answered>),
}

/// How far it has come.
enum Phase {
    /// The responder is asked to shake hands.
    Asking {
        exchange: Exchange,
        /// One cookie is taken for each time it was asked for want of an answer.
        may_take_cookie: bool,
        has_new_cookie: bool,
    },
    /// It did, and is told the request.
    Saying {
        keys: Keys,
        rx_protection: Box<RxProtection>,
    },
    /// It has answered.
    Done,
}

/// Shakes hands with a responder and says something to it, again and again.
pub struct Initiator {
    suite: Suite,
    responder: Option<PublicKey>,
    interface: u64,
    payload: Vec<u8>,
    codes: Codes,
    begun_ns: u64,
    wall_ms: u64,
    /// Said in vain since it began anew, and how often it did that.
    in_vain: u32,
    begun_anew: u32,
    again_ns: u64,
    deadline_ns: u64,
    /// The message of the present state.
    datagram: Vec<u8>,
    association: u32,
    phase: Phase,
}

impl core::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Initiator")
            .field("association", &self.association)
            .field("in_vain", &self.in_vain)
            .finish_non_exhaustive()
    }
}

impl Initiator {
    /// Has this said to that interface; 0 is the name service of a host. `host` is whose key is
    /// expected, if hosts have keys. `wall_ms` is the time of day, in milliseconds since 1970.
    pub fn new(
        credentials: &Credentials,
        host: Option<&str>,
        interface: u64,
        payload: &[u8],
        now_ns: u64,
        wall_ms: u64,
    ) -> Result<Self, HandshakeError> {
        let suite = Suite::new(credentials.clone(), Source::default());
        Self::of(suite, host, interface, payload, now_ns, wall_ms)
    }

    /// The same, with the random bytes of a simulation.
    pub fn with_randomness(
        randomness: Arc<dyn Randomness>,
        credentials: &Credentials,
        host: Option<&str>,
        interface: u64,
        payload: &[u8],
        now_ns: u64,
        wall_ms: u64,
    ) -> Result<Self, HandshakeError> {
        let suite = Suite::new(credentials.clone(), Source::given(randomness));
        Self::of(suite, host, interface, payload, now_ns, wall_ms)
    }

    fn of(
        suite: Suite,
        host: Option<&str>,
        interface: u64,
        payload: &[u8],
        now_ns: u64,
        wall_ms: u64,
    ) -> Result<Self, HandshakeError> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            let bytes = payload.len();
            return Err(HandshakeError::Payload { bytes });
        }
        let responder = suite.expected(host)?;
        let mut initiator = Self {
            codes: suite.codes(responder.as_ref()),
            suite,
            responder,
            interface,
            payload: payload.to_vec(),
            begun_ns: now_ns,
            wall_ms,
            in_vain: 0,
            begun_anew: 0,
            again_ns: AGAIN_NS,
            deadline_ns: now_ns,
            datagram: Vec::new(),
            association: 0,
            phase: Phase::Done,
        };
        initiator.begin(now_ns)?;
        Ok(initiator)
    }

    fn mode(&self) -> Mode {
        self.suite.mode()
    }

    /// Asks for a handshake that nobody has seen before.
    fn begin(&mut self, now_ns: u64) -> Result<(), HandshakeError> {
        let mode = self.mode();
        // Those of links have the highest bit.
        let association = u32::from_le_bytes(self.suite.random.bytes()?) >> 1 | 1;
        let since_ms = now_ns.saturating_sub(self.begun_ns) / 1_000_000;
        let head = Head {
            kind: Kind::Initiation,
            to: 0,
            from: association,
            time_ms: self.wall_ms.saturating_add(since_ms),
        };
        let mut datagram = vec![0; mode.initiation_bytes()];
        let (ask, shown) = datagram.split_at_mut(mode.initiation_bytes() - 2 * CODE_BYTES);
        let (first, body) = ask.split_at_mut(HEAD_BYTES);
        first.copy_from_slice(&head.bytes(mode));
        let prologue = prologue(first, self.interface);
        let exchange = self.suite.ask(&prologue, self.responder.as_ref(), body)?;
        let code = hmac::sign(&self.codes.ask, Coded::new(ask, self.interface).bytes());
        shown[..CODE_BYTES].copy_from_slice(code.as_ref());
        (self.datagram, self.association) = (datagram, association);
        self.phase = Phase::Asking {
            exchange,
            may_take_cookie: true,
            has_new_cookie: false,
        };
        Ok(())
    }

    /// By which number this side is known.
    pub fn association(&self) -> u32 {
        self.association
    }

    /// How often it began anew because nobody answered. When to give up is the caller's affair.
    pub fn begun_anew(&self) -> u32 {
        self.begun_anew
    }

    /// When [`Initiator::poll`] is to be called next; nothing when there is an answer.
    pub fn deadline_ns(&self) -> Option<u64> {
        (!matches!(self.phase, Phase::Done)).then_some(self.deadline_ns)
    }

    /// The message to send to the responder now, if any.
    pub fn poll(&mut self, now_ns: u64) -> Option<&[u8]> {
        if now_ns < self.deadline_ns()? {
            return None;
        }
        let is_at_once = match &mut self.phase {
            Phase::Asking {
                may_take_cookie,
                has_new_cookie,
                ..
            } => {
                *may_take_cookie = !*has_new_cookie;
                core::mem::take(has_new_cookie)
            }
            _ => false,
        };
        // Without randomness the same is said again.
        if self.in_vain >= IN_VAIN_MAX && !is_at_once && self.begin(now_ns).is_ok() {
            (self.in_vain, self.begun_anew) = (0, self.begun_anew.saturating_add(1));
        }
        self.in_vain += 1;
        self.deadline_ns = now_ns.saturating_add(self.again_ns);
        self.again_ns = (self.again_ns * 2).min(AGAIN_NS_MAX);
        Some(&self.datagram)
    }

    /// A datagram came that may be an answer.
    pub fn take(&mut self, now_ns: u64, datagram: &[u8]) -> Result<Taken, Unheard> {
        match &self.phase {
            Phase::Asking { .. } if datagram.len() == COOKIE_MESSAGE_BYTES => {
                self.take_cookie(now_ns, datagram)
            }
            Phase::Asking { .. } => self.take_response(now_ns, datagram),
            Phase::Saying { .. } => self.take_payload(datagram),
            Phase::Done => Err(Unheard::Done),
        }
    }

    fn take_response(&mut self, now_ns: u64, datagram: &[u8]) -> Result<Taken, Unheard> {
        let mode = self.mode();
        if datagram.len() != mode.response_bytes() {
            return Err(Unheard::Malformed);
        }
        let head = Head::parse(datagram, mode, Kind::Response);
        let head = head.filter(|head| head.to == self.association && head.time_ms == 0);
        let head = head.ok_or(Unheard::Malformed)?;
        let body = self.authentic(datagram)?;
        let Phase::Asking { exchange, .. } = &mut self.phase else {
            return Err(Unheard::Done);
        };
        let (keys, number) = exchange.finish(&body[HEAD_BYTES..])?;
        // From here on the other side has proved that it holds the keys, and nobody else could
        // answer.
        if u32::from_le_bytes(number) != head.from {
            return Err(Unheard::Malformed);
        }
        let mut datagram = vec![0; self.payload.len() + keys.send.overhead_bytes()];
        let mut tx_protection = TxProtection::new(&keys.send, head.from);
        let protected = tx_protection.protect(Kind::Payload, 0, &self.payload, &mut datagram);
        protected.map_err(|_| Unheard::Malformed)?;
        let rx_protection = Box::new(RxProtection::new(&keys.receive, self.association));
        self.phase = Phase::Saying {
            keys,
            rx_protection,
        };
        self.datagram = datagram;
        (self.in_vain, self.again_ns, self.deadline_ns) = (0, AGAIN_NS, now_ns);
        Ok(Taken::Again)
    }

    fn take_payload(&mut self, datagram: &[u8]) -> Result<Taken, Unheard> {
        let Phase::Saying {
            keys,
            rx_protection,
        } = &mut self.phase
        else {
            return Err(Unheard::Done);
        };
        let mut room = [0; MESSAGE_BYTES_MAX];
        let room = room.get_mut(..datagram.len()).ok_or(Unheard::Malformed)?;
        room.copy_from_slice(datagram);
        let opened = rx_protection.unprotect(room).map_err(|_| Unheard::Broken)?;
        if opened.kind != Kind::Payload {
            return Err(Unheard::Malformed);
        }
        let answered = Answered {
            payload: opened.frame.to_vec(),
            keys: keys.of_link(),
            identity: self.suite.identity_of(self.responder.as_ref()),
        };
        self.phase = Phase::Done;
        Ok(Taken::Answered(Box::new(answered)))
    }

    /// The bytes before the code, if it is one for what was asked.
    fn authentic<'a>(&self, datagram: &'a [u8]) -> Result<&'a [u8], Unheard> {
        let (body, code) = datagram
            .split_last_chunk::<CODE_BYTES>()
            .ok_or(Unheard::Malformed)?;
        let end = self.datagram.len() - CODE_BYTES;
        let asked = &self.datagram[end - CODE_BYTES..end];
        let expected = answer_code(&self.codes.answer, body, asked);
        if !is_same(&self.codes.answer, &expected, code) {
            return Err(Unheard::Unauthentic);
        }
        Ok(body)
    }

    fn take_cookie(&mut self, now_ns: u64, datagram: &[u8]) -> Result<Taken, Unheard> {
        let head = Head {
            kind: Kind::Cookie,
            to: self.association,
            from: 0,
            time_ms: 0,
        };
        if datagram[..PACKET_HEADER_BYTES] != head.bytes(self.mode())[..PACKET_HEADER_BYTES] {
            return Err(Unheard::Malformed);
        }
        let body = self.authentic(datagram)?;
        let Phase::Asking {
            may_take_cookie,
            has_new_cookie,
            ..
        } = &mut self.phase
        else {
            return Err(Unheard::Done);
        };
        let end = self.datagram.len() - CODE_BYTES;
        let (ask, shown) = self.datagram.split_at_mut(end);
        let show = cookie::show(&body[PACKET_HEADER_BYTES..], ask);
        // Otherwise repeated cookies would make us send.
        if !*may_take_cookie || shown == show.as_ref() {
            return Err(Unheard::Repeated);
        }
        shown.copy_from_slice(show.as_ref());
        (*may_take_cookie, *has_new_cookie) = (false, true);
        self.deadline_ns = now_ns;
        Ok(Taken::Again)
    }
}
