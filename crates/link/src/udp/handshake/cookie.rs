//! Cookies: proof that an initiator receives at the address that it gives. Nothing is stored for
//! one.
//!
//! A cookie is a code of the source's address under a secret that changes; it is valid for as long
//! as the secret after it is young, too.

use std::net::{IpAddr, SocketAddr};

use ring::hmac;

use super::super::randomness::{NoRandom, Source};

/// How long cookies are made with one secret, in nanoseconds; a cookie is valid for one to two such
/// times.
const ROTATION_NS: u64 = 120_000_000_000;

pub(super) struct CookieKey {
    master: hmac::Key,
}

impl CookieKey {
    pub(super) fn new(random: &Source) -> Result<Self, NoRandom> {
        let master = hmac::Key::new(hmac::HMAC_SHA256, &random.bytes::<32>()?);
        Ok(Self { master })
    }

    /// The cookie of this source now.
    pub(super) fn make(&self, now_ns: u64, source: SocketAddr) -> hmac::Tag {
        self.of(now_ns / ROTATION_NS, source)
    }

    /// The cookies of this source that are valid.
    pub(super) fn valid(&self, now_ns: u64, source: SocketAddr) -> [hmac::Tag; 2] {
        let now = now_ns / ROTATION_NS;
        [self.of(now, source), self.of(now.saturating_sub(1), source)]
    }

    fn of(&self, period: u64, source: SocketAddr) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.master);
        context.update(&period.to_le_bytes());
        match source.ip() {
            IpAddr::V4(address) => context.update(&address.octets()),
            IpAddr::V6(address) => context.update(&address.octets()),
        }
        context.update(&source.port().to_le_bytes());
        context.sign()
    }
}

/// What an initiation shows of its cookie: a code of its bytes under it.
pub(super) fn show(cookie: &[u8], bytes: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, cookie), bytes)
}

/// Whether the cookie is the one for that address.
pub(super) fn is_shown(cookie: &hmac::Tag, bytes: &[u8], shown: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, cookie.as_ref());
    hmac::verify(&key, bytes, shown).is_ok()
}
