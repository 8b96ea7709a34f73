//! Where handshakes get their random bytes: from the system, or from whoever gives some
//! ([`Randomness`], decision 0033).
//!
//! A simulation gives them from its seed, so that a handshake is the same again. Whoever can guess
//! them knows the keys: nothing but a simulation may give any.

use std::sync::Arc;

use ring::rand::{SecureRandom as _, SystemRandom};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver, FallbackResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};

/// The system gives no random bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandom;

/// Random bytes for handshakes.
pub trait Randomness: Send + Sync {
    /// Fills all of it.
    fn fill(&self, into: &mut [u8]) -> Result<(), NoRandom>;
}

/// That of the system, unless another is given.
#[derive(Clone, Default)]
pub(super) struct Source(Option<Arc<dyn Randomness>>);

impl Source {
    pub(super) fn given(randomness: Arc<dyn Randomness>) -> Self {
        Self(Some(randomness))
    }

    pub(super) fn bytes<const N: usize>(&self) -> Result<[u8; N], NoRandom> {
        let mut bytes = [0; N];
        match &self.0 {
            None => SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandom)?,
            Some(given) => given.fill(&mut bytes)?,
        }
        Ok(bytes)
    }

    /// What the library of the handshake computes with: as it does by itself, but for given random
    /// bytes.
    pub(super) fn resolver(&self) -> Box<dyn CryptoResolver + Send> {
        let usual = FallbackResolver::new(Box::new(RingResolver), Box::new(DefaultResolver));
        match &self.0 {
            None => Box::new(usual),
            Some(given) => Box::new(Given(Arc::clone(given), usual)),
        }
    }
}

struct Given(Arc<dyn Randomness>, FallbackResolver);

impl CryptoResolver for Given {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(GivenBytes(Arc::clone(&self.0))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        self.1.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        self.1.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        self.1.resolve_cipher(choice)
    }
}

struct GivenBytes(Arc<dyn Randomness>);

impl Random for GivenBytes {
    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), snow::Error> {
        self.0.fill(into).map_err(|_| snow::Error::Rng)
    }
}
