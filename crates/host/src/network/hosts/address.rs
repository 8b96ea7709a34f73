//! Addresses as people write them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

use super::NAME_SERVICE_PORT;

/// Why a word is not the address of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadAddress {
    /// It is not an address.
    #[error(
        "it is not an address: 192.0.2.7, 192.0.2.7:9000, 2001:db8::7, [2001:db8::7]:9000, fe80::7%eth0"
    )]
    NotAnAddress,
    /// Each network interface has neighbours with such addresses.
    #[error(
        "a link-local address needs the network interface on which it is reached: fe80::7%eth0"
    )]
    NoScope,
    /// This host has no such network interface.
    #[error("this host has no network interface of the name behind the %")]
    NoSuchInterface,
}

/// An address as people write it, with a port or without: then the port of name services.
pub fn address_of(word: &str) -> Result<SocketAddr, BadAddress> {
    let address = parse(word, NAME_SERVICE_PORT)?;
    match is_ambiguous(&address) {
        true => Err(BadAddress::NoScope),
        false => Ok(address),
    }
}

/// An address of this host, with a port or without: then any.
pub(crate) fn own_address_of(word: &str) -> Result<SocketAddr, BadAddress> {
    parse(word, 0)
}

/// Whether it is an address that each network interface has for itself, without saying which.
pub(crate) fn is_ambiguous(address: &SocketAddr) -> bool {
    match address {
        SocketAddr::V4(_) => false,
        SocketAddr::V6(at) => at.ip().is_unicast_link_local() && at.scope_id() == 0,
    }
}

fn parse(word: &str, port: u16) -> Result<SocketAddr, BadAddress> {
    if let Ok(address) = word.parse::<SocketAddr>() {
        return Ok(address);
    }
    if let Ok(ip) = word.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    let bad = BadAddress::NotAnAddress;
    let (word, port) = match word.strip_prefix('[') {
        None => (word, port),
        Some(rest) => {
            let (inner, port) = rest.split_once("]:").ok_or(bad)?;
            (inner, port.parse().map_err(|_| bad)?)
        }
    };
    let (ip, interface) = word.split_once('%').ok_or(bad)?;
    let ip: Ipv6Addr = ip.parse().map_err(|_| bad)?;
    let scope = scope_of(interface).ok_or(BadAddress::NoSuchInterface)?;
    Ok(SocketAddrV6::new(ip, port, 0, scope).into())
}

/// The number of a network interface, which may be given by name.
fn scope_of(interface: &str) -> Option<u32> {
    if let Ok(number) = interface.parse() {
        return Some(number);
    }
    // Any socket will do.
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    rustix::net::netdevice::name_to_index(&socket, interface).ok()
}
