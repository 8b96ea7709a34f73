//! By which a host proves who it is: read from files, and checked against the names of hosts.

use std::collections::BTreeMap;

use hamlyn_link::udp::handshake::Credentials;
use hamlyn_link::udp::key_file::{ClusterSecret, HostKey, parse_hosts};

use super::NetworkError;
use super::hosts::HostName;
use super::options::Security;
use crate::HostError;

/// Reads what this security needs.
pub(super) fn credentials(security: &Security) -> Result<Credentials, HostError> {
    let key = |what: &'static str| {
        move |error: hamlyn_link::udp::key_file::KeyFileError| {
            HostError::from(NetworkError::Key(format!("{what}: {error}")))
        }
    };
    Ok(match security {
        Security::Insecure => Credentials::Insecure,
        Security::Secret(file) => {
            let secret = ClusterSecret::read(file);
            Credentials::Secret(secret.map_err(key("the cluster's secret (HAMLYN_SECRET)"))?)
        }
        Security::Keys { own, known } => {
            let text = std::fs::read_to_string(known).map_err(|error| NetworkError::File {
                what: "the keys of hosts (HAMLYN_KNOWN)",
                path: known.clone(),
                error: error.to_string(),
            })?;
            let hosts = parse_hosts(&text);
            let bad = |error| {
                format!(
                    "the keys of hosts (HAMLYN_KNOWN), {}: {error}",
                    known.display()
                )
            };
            let hosts = hosts.map_err(|error| NetworkError::Key(bad(error)))?;
            tell_apart(hosts.iter().map(|(name, _)| name.as_str()))?;
            let own = HostKey::read(own).map_err(key("this host's key (HAMLYN_KEY)"))?;
            Credentials::Keys { own, hosts }
        }
    })
}

/// Refuses a name that is not that of the own key, if the list names that: no peer with this list
/// would have us.
pub(super) fn check_own_name(
    credentials: &Credentials,
    host: &HostName,
) -> Result<(), NetworkError> {
    let Credentials::Keys { own, hosts } = credentials else {
        return Ok(());
    };
    let own = own.public();
    let mut names = hosts
        .iter()
        .filter(|(_, key)| *key == own)
        .map(|(name, _)| name);
    let Some(first) = names.next() else {
        return Ok(());
    };
    let is_own = |name: &String| HostName::new(name).is_ok_and(|name| name == *host);
    match is_own(first) || names.any(is_own) {
        true => Ok(()),
        false => Err(NetworkError::NotOwnName {
            listed: first.clone(),
            host: host.clone(),
        }),
    }
}

/// Refuses hosts that tickets could not tell apart: one could speak for the other.
pub(super) fn tell_apart<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), NetworkError> {
    let mut numbers = BTreeMap::new();
    for name in names {
        let other = HostName::new(name)?;
        match numbers.insert(other.node(), other.clone()) {
            Some(one) if one != other => return Err(NetworkError::SameNumber { one, other }),
            _ => {}
        }
    }
    Ok(())
}
