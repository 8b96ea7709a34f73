//! Names, and the socket addresses that they stand for.
//!
//! The addresses are abstract: they exist as long as a socket is bound to
//! them, and nothing is left of them after any kind of death. They have no
//! permissions; who may connect is decided by the kernel's credentials.

use crate::HostError;
use rustix::net::SocketAddrUnix;

/// A published name: 1 to 64 letters, digits, dots, underscores, hyphens and slashes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Name(String);

impl Name {
    /// The longest name.
    pub const BYTES_MAX: usize = 64;

    /// Checks a name; the error says what is wrong with it.
    pub fn new(name: &str) -> Result<Self, &'static str> {
        check(name, Self::BYTES_MAX)?;
        Ok(Self(name.to_owned()))
    }

    /// The same, for a name that this process publishes: an address of an end point in it leads
    /// here, so its parts are not empty, and there are no more than two of them.
    pub fn published(name: &str) -> Result<Self, HostError> {
        let own = Self::checked(name)?;
        let reason = if name.split('/').any(str::is_empty) {
            "something stands before and behind a slash: `group/name`"
        } else if name.matches('/').count() > 1 {
            "it has one slash at most: `group/name`"
        } else {
            return Ok(own);
        };
        Err(HostError::BadName {
            name: name.to_owned(),
            reason,
        })
    }

    /// The same, with an error that names it.
    pub fn checked(name: &str) -> Result<Self, HostError> {
        Self::new(name).map_err(|reason| HostError::BadName {
            name: name.to_owned(),
            reason,
        })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A namespace: several installations on one host do not see each other.
/// 1 to 32 characters of those of a [`Name`], but no slash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Namespace(String);

impl Namespace {
    /// The longest namespace.
    pub const BYTES_MAX: usize = 32;

    /// Checks a namespace; the error says what is wrong with it.
    pub fn new(namespace: &str) -> Result<Self, &'static str> {
        check(namespace, Self::BYTES_MAX)?;
        if namespace.contains('/') {
            return Err("a namespace has no slash");
        }
        Ok(Self(namespace.to_owned()))
    }

    /// The namespace.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where the interface of that number listens.
    pub fn interface_address(&self, interface: u64) -> rustix::io::Result<SocketAddrUnix> {
        let address = format!("hamlyn/{}/i/{interface:016x}", self.0);
        SocketAddrUnix::new_abstract_name(address.as_bytes())
    }

    /// Where the interface that published `name` listens.
    pub fn name_address(&self, name: &Name) -> rustix::io::Result<SocketAddrUnix> {
        let address = format!("hamlyn/{}/n/{}", self.0, name.0);
        SocketAddrUnix::new_abstract_name(address.as_bytes())
    }
}

fn check(text: &str, bytes_max: usize) -> Result<(), &'static str> {
    if text.is_empty() {
        return Err("it is empty");
    }
    if text.len() > bytes_max {
        return Err("it is too long");
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
    if !text.bytes().all(allowed) {
        return Err("only letters, digits and . _ / - are allowed");
    }
    Ok(())
}

// The longest address fits: 107 bytes is what an abstract address may have.
const _: () =
    assert!("hamlyn/".len() + Namespace::BYTES_MAX + "/n/".len() + Name::BYTES_MAX <= 107);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_obey_the_rules() {
        for good in ["a", "A.b_c/d-9", &"x".repeat(64)] {
            assert!(Name::new(good).is_ok(), "{good}");
        }
        for bad in ["", " ", "a b", "ä", "a\0", "a\n", &"x".repeat(65)] {
            assert!(Name::new(bad).is_err(), "{bad:?}");
        }
        assert!(Namespace::new("a/b").is_err());
    }

    #[test]
    fn the_longest_address_can_be_made() {
        let namespace = Namespace::new(&"n".repeat(32)).unwrap();
        let name = Name::new(&"x".repeat(64)).unwrap();
        assert!(namespace.name_address(&name).is_ok());
        assert!(namespace.interface_address(u64::MAX).is_ok());
    }
}
