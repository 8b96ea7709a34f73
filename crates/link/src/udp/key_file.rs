//! The secrets of hosts: made, read from files, written as text.
//!
//! A file holds a cluster's secret, or the private key of a host, as hexadecimal digits or base64.
//! A file that everybody can read or write is refused, as is a secret that cannot be one: too
//! short, or of few different bytes. What is secret is wiped when it is dropped, and never printed.

use core::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use zeroize::Zeroizing;

use super::randomness::{NoRandom, Source};

/// Bytes of a key of a host, and the least of a cluster's secret.
pub const KEY_BYTES: usize = 32;
/// The longest cluster secret, in bytes.
pub const SECRET_BYTES_MAX: usize = 1024;
/// The longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 8192;
/// Thirty-two random bytes have fewer different ones about once in the age of the universe.
const DIFFERENT_BYTES_MIN: usize = 12;

/// Why a text is not a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotAKey {
    /// Neither hexadecimal nor base64.
    #[error("neither hexadecimal digits nor base64")]
    Text,
    /// Of the wrong length.
    #[error("{bytes} bytes: a key has 32, a secret from 32 to 1024")]
    Length {
        /// How many bytes it has.
        bytes: usize,
    },
    /// Not made by chance.
    #[error("hardly random: too few different bytes")]
    Simple,
    /// A line of a list is not a name and a public key.
    #[error("line {line} is not a host's name and its public key")]
    Line {
        /// Which, counted from one.
        line: usize,
    },
    /// Two lines of a list name one host, or one key.
    #[error("line {line} names a host or a key again")]
    Twice {
        /// The second, counted from one.
        line: usize,
    },
}

/// A key file is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("{path}: {error}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// The system's reason.
        error: std::io::Error,
    },
    /// Everybody may read or write it.
    #[error("{path}: mode {mode:o} lets everybody read or write it (chmod 600 {path})")]
    Exposed {
        /// Which file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It holds something else.
    #[error("{path}: {reason}")]
    Content {
        /// Which file.
        path: PathBuf,
        /// The fault.
        reason: NotAKey,
    },
}

/// What all hosts of a cluster know, and nobody else.
#[derive(Clone)]
pub struct ClusterSecret(Zeroizing<Vec<u8>>);

impl fmt::Debug for ClusterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterSecret(..)")
    }
}

impl ClusterSecret {
    /// A new one, of 32 random bytes.
    pub fn generate() -> Result<Self, NoRandom> {
        let bytes = Zeroizing::new(Source::default().bytes::<KEY_BYTES>()?);
        Ok(Self(Zeroizing::new(bytes.to_vec())))
    }

    /// One that was written as text.
    pub fn parse(text: &str) -> Result<Self, NotAKey> {
        let bytes = decode(text)?;
        if !(KEY_BYTES..=SECRET_BYTES_MAX).contains(&bytes.len()) {
            return Err(NotAKey::Length { bytes: bytes.len() });
        }
        is_random(&bytes)?;
        Ok(Self(bytes))
    }

    /// From a file.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        read(path, Self::parse)
    }

    /// As text. Wiped when dropped.
    pub fn to_text(&self) -> Zeroizing<String> {
        hexadecimal(&self.0)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// By which the others know a host. Not a secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; KEY_BYTES]);

impl PublicKey {
    /// One that was written as text.
    pub fn parse(text: &str) -> Result<Self, NotAKey> {
        Ok(Self(*exactly(&decode(text)?)?))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// The key pair of a host.
#[derive(Clone)]
pub struct HostKey {
    private: Zeroizing<[u8; KEY_BYTES]>,
    public: PublicKey,
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostKey({}, ..)", self.public)
    }
}

impl HostKey {
    /// A new one.
    pub fn generate() -> Result<Self, NoRandom> {
        Ok(Self::of(Zeroizing::new(Source::default().bytes()?)))
    }

    /// A private key that was written as text; the public one follows from it.
    pub fn parse(text: &str) -> Result<Self, NotAKey> {
        let bytes = decode(text)?;
        let private = Zeroizing::new(*exactly(&bytes)?);
        is_random(&*private)?;
        Ok(Self::of(private))
    }

    /// From a file with the private key.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        read(path, Self::parse)
    }

    fn of(private: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let mut curve = DefaultResolver
            .resolve_dh(&DHChoice::Curve25519)
            .expect("the curve is compiled in");
        curve.set(&*private);
        let public = *curve.pubkey().first_chunk().expect("32 bytes of a point");
        let public = PublicKey(public);
        Self { private, public }
    }

    /// What the others are to know.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// The private key as text. Wiped when dropped.
    pub fn to_text(&self) -> Zeroizing<String> {
        hexadecimal(&*self.private)
    }

    pub(super) fn private(&self) -> &[u8; KEY_BYTES] {
        &self.private
    }
}

/// A list of hosts: a name and a public key on each line; `#` begins a comment.
pub fn parse_hosts(text: &str) -> Result<Vec<(String, PublicKey)>, NotAKey> {
    let mut hosts: Vec<(String, PublicKey)> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.split('#').next().unwrap_or_default();
        let mut words = content.split_whitespace();
        let Some(name) = words.next() else { continue };
        let key = words.next().ok_or(NotAKey::Line { line })?;
        let key = PublicKey::parse(key).map_err(|_| NotAKey::Line { line })?;
        if words.next().is_some() {
            return Err(NotAKey::Line { line });
        }
        if hosts.iter().any(|host| host.0 == name || host.1 == key) {
            return Err(NotAKey::Twice { line });
        }
        hosts.push((name.to_owned(), key));
    }
    Ok(hosts)
}

fn exactly(bytes: &[u8]) -> Result<&[u8; KEY_BYTES], NotAKey> {
    let length = NotAKey::Length { bytes: bytes.len() };
    bytes.try_into().map_err(|_| length)
}

fn is_random(bytes: &[u8]) -> Result<(), NotAKey> {
    let mut seen = [false; 256];
    for &byte in bytes {
        seen[usize::from(byte)] = true;
    }
    let different = seen.iter().filter(|&&seen| seen).count();
    if different < DIFFERENT_BYTES_MIN {
        return Err(NotAKey::Simple);
    }
    Ok(())
}

/// Digits first: 64 of them would be base64, too.
fn decode(text: &str) -> Result<Zeroizing<Vec<u8>>, NotAKey> {
    let text = text.trim();
    if text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
        let pairs = text.as_bytes().chunks_exact(2);
        let bytes = pairs
            .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
            .collect();
        return Ok(Zeroizing::new(bytes));
    }
    STANDARD
        .decode(text)
        .map(Zeroizing::new)
        .map_err(|_| NotAKey::Text)
}

fn hexadecimal(bytes: &[u8]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(2 * bytes.len()));
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    text
}

fn read<T>(path: &Path, parse: impl Fn(&str) -> Result<T, NotAKey>) -> Result<T, KeyFileError> {
    let failed = |error| KeyFileError::Read {
        path: path.to_owned(),
        error,
    };
    let content = |reason| KeyFileError::Content {
        path: path.to_owned(),
        reason,
    };
    let mut file = File::open(path).map_err(failed)?;
    // Of the file that was opened, not of one that took its place.
    let mode = file.metadata().map_err(failed)?.mode() & 0o777;
    if mode & 0o007 != 0 {
        let path = path.to_owned();
        return Err(KeyFileError::Exposed { path, mode });
    }
    // Never moved while it grows, which would leave copies behind.
    let mut text = Zeroizing::new(String::with_capacity(FILE_BYTES_MAX as usize));
    let mut limited = (&mut file).take(FILE_BYTES_MAX);
    limited.read_to_string(&mut text).map_err(failed)?;
    parse(&text).map_err(content)
}

#[cfg(test)]
mod tests;
