//! Loss, made by the kernel: a filter on the sockets of a process throws part of what comes for
//! them away, by chance.
//!
//! The filter is put there from outside, through a copy of the descriptor, so what is measured
//! knows nothing of it. It sees what the kernel delivers in one piece. Where the kernel joins
//! datagrams that is a run of up to 45 of them, so loss comes in bursts, as from a queue that is
//! full. With joining switched off each datagram is filtered by itself.

use std::os::fd::RawFd;

use anyhow::{Context, Result};
use nix::sys::socket::{setsockopt, sockopt};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use socket2::{Domain, SockFilter, SockRef, Type};

/// What is lost at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    /// What the kernel joined.
    Run,
    /// One datagram; nothing is joined.
    Datagram,
}

impl Unit {
    pub(super) const ALL: [Self; 2] = [Self::Run, Self::Datagram];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Run => "runs",
            Self::Datagram => "datagrams",
        }
    }
}

/// The sockets of a process that carry UDP.
pub(super) struct Sockets(Vec<OwnedFd>);

impl Sockets {
    pub(super) fn of(process: u32) -> Result<Self> {
        let pid = Pid::from_raw(process as i32).context("a process without a number")?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).context("opening a process")?;
        let mut sockets = Vec::new();
        for entry in std::fs::read_dir(format!("/proc/{process}/fd"))? {
            let number: RawFd = entry?.file_name().to_string_lossy().parse()?;
            let taken = pidfd_getfd(&handle, number, PidfdGetfdFlags::empty());
            let socket = taken.context("taking a copy of a descriptor")?;
            let (kind, domain) = {
                let socket = SockRef::from(&socket);
                (socket.r#type(), socket.domain())
            };
            let is_internet =
                domain.is_ok_and(|domain| [Domain::IPV4, Domain::IPV6].contains(&domain));
            if is_internet && kind.is_ok_and(|kind| kind == Type::DGRAM) {
                sockets.push(socket);
            }
        }
        Ok(Self(sockets))
    }

    /// From now on so much is lost, in units of that kind.
    pub(super) fn lose(&self, percent: f64, unit: Unit) -> Result<()> {
        for socket in &self.0 {
            let joins = unit == Unit::Run;
            setsockopt(socket, sockopt::UdpGroSegment, &joins).context("joining datagrams")?;
            SockRef::from(socket)
                .attach_filter(&losing(percent))
                .context("filtering a socket")?;
        }
        Ok(())
    }
}

/// A program of the kernel's filter machine (`Documentation/networking/filter.rst`) that accepts
/// all but so much.
fn losing(percent: f64) -> [SockFilter; 4] {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    /// `SKF_AD_OFF + SKF_AD_RANDOM`: not a byte of the packet, but chance.
    const CHANCE: u32 = (-0x1000_i32 + 56) as u32;
    let below = (percent / 100.0 * 2_f64.powi(32)) as u32;
    [
        SockFilter::new(LOAD_WORD, 0, 0, CHANCE),
        SockFilter::new(JUMP_IF_AT_LEAST, 0, 1, below),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
        SockFilter::new(RETURN, 0, 0, 0),
    ]
}
