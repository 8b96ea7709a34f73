//! Whoever is asked: one for a socket, whoever may ask.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use super::super::envelope::Kind;
use super::super::key_file::NoRandom;
use super::cookie::{self, Jar, ROTATION_NS};
use super::message::{
    ANSWER_BYTES, ASK_BYTES, CODE_BYTES, COOKIE_MESSAGE_BYTES, Codes, HEAD_BYTES, Head, Mode,
    PAYLOAD_BYTES_MAX, answer_code, put_payload, take_payload,
};
use super::noise::{Exchange, Suite};
use super::{Credentials, Established, FRESH_MS, HandshakeError, Identity, Unheard};
use crate::udp::envelope::ENVELOPE_BYTES;
use ring::hmac;

/// Initiations that are remembered.
const SEEN_MAX: usize = 16_384;
/// Answers that are kept, to be given again.
const ANSWERS_MAX: usize = 256;
/// As long as an initiation could be accepted: by its time, whichever clock is ahead, or by its cookie.
const SEEN_NS: u64 = {
    let by_time_ns = 2 * FRESH_MS * 1_000_000;
    let by_cookie_ns = 2 * ROTATION_NS;
    if by_time_ns > by_cookie_ns {
        by_time_ns
    } else {
        by_cookie_ns
    }
} + 10_000_000_000;

type Code = [u8; CODE_BYTES];

/// What a message calls for.
#[derive(Debug)]
pub enum Heard<'a> {
    /// These bytes are to be sent to the source.
    Reply(&'a [u8]),
    /// An authentic initiation: to be accepted at once, or dropped.
    Asked(Box<Asked>),
}

/// An authentic initiation that is not answered yet.
pub struct Asked {
    exchange: Exchange,
    code: Code,
    association: u32,
    payload: Vec<u8>,
    identity: Identity,
}

impl core::fmt::Debug for Asked {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Asked")
            .field("association", &self.association)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl Asked {
    /// What the initiator has to say.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Who it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// By which number it knows the association.
    pub fn association(&self) -> u32 {
        self.association
    }
}

/// An initiation that was accepted.
#[derive(Debug)]
pub struct Accepted<'a> {
    /// Provisional until the first datagram with these keys is opened.
    pub established: Established,
    /// To be sent to the source.
    pub response: &'a [u8],
}

/// What is known of an initiation that was accepted.
#[derive(Clone, Copy)]
struct Seen {
    /// Its answer has this number.
    answer: u64,
}

/// Answers whoever asks, and keeps nothing of those it has not authenticated.
pub struct Responder {
    suite: Suite,
    mode: Mode,
    codes: Codes,
    jar: Jar,
    seen: BTreeMap<Code, Seen>,
    /// Those in the order in which they were accepted, and until when they are remembered.
    order: VecDeque<(u64, Code)>,
    answers: VecDeque<Vec<u8>>,
    /// Number of the first answer that is kept.
    first_answer: u64,
    /// Until then nobody is taken at the word of his clock: not all that were accepted are remembered.
    wary_until_ns: u64,
    seen_max: usize,
    cookie_message: [u8; COOKIE_MESSAGE_BYTES],
}

impl core::fmt::Debug for Responder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Responder")
            .field("mode", &self.mode)
            .field("remembered", &self.order.len())
            .finish_non_exhaustive()
    }
}

impl Responder {
    /// Nobody has asked yet.
    pub fn new(credentials: &Credentials) -> Result<Self, NoRandom> {
        Self::with_seen_max(credentials, SEEN_MAX)
    }

    pub(super) fn with_seen_max(
        credentials: &Credentials,
        seen_max: usize,
    ) -> Result<Self, NoRandom> {
        let suite = Suite::new(credentials.clone());
        Ok(Self {
            mode: suite.mode(),
            codes: suite.codes(None),
            suite,
            jar: Jar::new()?,
            seen: BTreeMap::new(),
            order: VecDeque::new(),
            answers: VecDeque::new(),
            first_answer: 0,
            wary_until_ns: 0,
            seen_max,
            cookie_message: [0; COOKIE_MESSAGE_BYTES],
        })
    }

    /// How many initiations are remembered.
    pub fn remembered(&self) -> usize {
        self.order.len()
    }

    /// A datagram came that may be an initiation. `wall_ms` is the time of day, in milliseconds since 1970; while the host is
    /// `loaded` with more of them than it can answer, only those are answered whose source is proved.
    pub fn take(
        &mut self,
        now_ns: u64,
        wall_ms: u64,
        source: SocketAddr,
        datagram: &[u8],
        loaded: bool,
    ) -> Result<Heard<'_>, Unheard> {
        if datagram.len() != self.mode.initiation_bytes() {
            return Err(Unheard::Malformed);
        }
        let head = Head::parse(datagram, self.mode, Kind::Initiation);
        let head = head.filter(|head| head.to == 0).ok_or(Unheard::Malformed)?;
        let (coded, shown) = datagram
            .split_last_chunk::<CODE_BYTES>()
            .ok_or(Unheard::Malformed)?;
        let (ask, code) = coded
            .split_last_chunk::<CODE_BYTES>()
            .ok_or(Unheard::Malformed)?;
        hmac::verify(&self.codes.ask, ask, code).map_err(|_| Unheard::Unauthentic)?;
        self.forget(now_ns);
        if let Some(seen) = self.seen.get(code) {
            let at = seen.answer.checked_sub(self.first_answer);
            let answer = at.and_then(|at| self.answers.get(usize::try_from(at).ok()?));
            return answer
                .map(|answer| Heard::Reply(answer))
                .ok_or(Unheard::Stale);
        }
        let is_fresh = head.time_ms.abs_diff(wall_ms) <= FRESH_MS && now_ns >= self.wary_until_ns;
        if loaded || !is_fresh {
            let good = self.jar.good(now_ns, source);
            if !good.iter().any(|good| cookie::is_shown(good, coded, shown)) {
                return Ok(Heard::Reply(self.demand(now_ns, source, &head, code)));
            }
        }
        let (prologue, body) = ask.split_at(HEAD_BYTES);
        let mut plain = [0; ASK_BYTES];
        let (exchange, identity) = self.suite.hear(prologue, body, &mut plain)?;
        let payload = take_payload(&plain).ok_or(Unheard::Malformed)?;
        Ok(Heard::Asked(Box::new(Asked {
            exchange,
            code: *code,
            association: head.from,
            payload: payload.to_vec(),
            identity,
        })))
    }

    /// Answers an initiation: we give the association this number, random and not in use, and have this to say.
    pub fn accept(
        &mut self,
        now_ns: u64,
        asked: Asked,
        association: u32,
        payload: &[u8],
    ) -> Result<Accepted<'_>, HandshakeError> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            let bytes = payload.len();
            return Err(HandshakeError::Payload { bytes });
        }
        let head = Head {
            kind: Kind::Response,
            to: asked.association,
            from: association,
            time_ms: 0,
        };
        let mut plain = [0; ANSWER_BYTES];
        let (number, field) = plain.split_at_mut(4);
        number.copy_from_slice(&association.to_le_bytes());
        if let Some(field) = field.first_chunk_mut() {
            put_payload(field, payload);
        }
        let mut response = vec![0; self.mode.response_bytes()];
        let (body, code) = response.split_at_mut(self.mode.response_bytes() - CODE_BYTES);
        body[..HEAD_BYTES].copy_from_slice(&head.bytes(self.mode));
        let keys = asked.exchange.answer(&plain, &mut body[HEAD_BYTES..])?;
        let answer = answer_code(&self.codes.answer, body, &asked.code);
        code.copy_from_slice(answer.as_ref());

        self.remember(now_ns, asked.code, response)?;
        let established = Established {
            keys,
            association: asked.association,
            payload: asked.payload,
            identity: asked.identity,
        };
        let response = self.answers.back().map_or(&[][..], Vec::as_slice);
        Ok(Accepted {
            established,
            response,
        })
    }

    fn remember(&mut self, now_ns: u64, code: Code, response: Vec<u8>) -> Result<(), NoRandom> {
        if self.order.len() >= self.seen_max {
            // What is forgotten too early must not be accepted again: neither with a cookie that was given out, nor
            // by its time alone.
            self.jar = Jar::new()?;
            self.wary_until_ns = now_ns.saturating_add(SEEN_NS);
            for (_, code) in self.order.drain(..self.seen_max.div_ceil(2)) {
                self.seen.remove(&code);
            }
        }
        if self.answers.len() == ANSWERS_MAX {
            self.answers.pop_front();
            self.first_answer += 1;
        }
        let answer = self.first_answer + self.answers.len() as u64;
        self.answers.push_back(response);
        self.seen.insert(code, Seen { answer });
        self.order.push_back((now_ns.saturating_add(SEEN_NS), code));
        Ok(())
    }

    /// Work for each message is bounded; what waits longer is only remembered longer.
    fn forget(&mut self, now_ns: u64) {
        for _ in 0..2 {
            match self.order.front() {
                Some((until_ns, code)) if *until_ns <= now_ns => {
                    self.seen.remove(code);
                    self.order.pop_front();
                }
                _ => return,
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
            .split_at_mut(ENVELOPE_BYTES + CODE_BYTES);
        body[..ENVELOPE_BYTES].copy_from_slice(&head.bytes(self.mode)[..ENVELOPE_BYTES]);
        body[ENVELOPE_BYTES..].copy_from_slice(self.jar.bake(now_ns, source).as_ref());
        let answer = answer_code(&self.codes.answer, body, ask_code);
        code.copy_from_slice(answer.as_ref());
        &self.cookie_message
    }
}
