//! The network itself: UDP by the calls of the kernel alone, as well as we know how. Connected
//! sockets that are polled; a run of datagrams in one call (`UDP_SEGMENT`), and joined ones in one
//! call (`UDP_GRO`), where the kernel does that.
//!
//! A stream of plain UDP has no flow control: what the receiver cannot keep up with is lost, and
//! only what arrived counts. So this is the most that any program can get through these calls.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::socket::{setsockopt, sockopt};
use serde::{Deserialize, Serialize};

/// Bytes of headers of IPv4 and UDP.
const HEADERS_BYTES: usize = 28;
/// A call sends no more, and no more datagrams.
const RUN_BYTES_MAX: usize = 65_507;
const RUN_DATAGRAMS_MAX: usize = 64;
/// What sockets may hold, as ours do.
const BUFFER_BYTES: usize = 4 << 20;
/// Nothing on this machine takes so long.
const LOST_AFTER: Duration = Duration::from_secs(2);
/// A stream is over when nothing came for so long. Its end might be lost, so nothing says so.
const OVER_AFTER: Duration = Duration::from_millis(50);
const SHORT_BYTES: usize = 16;

/// One end.
pub(super) struct Udp {
    socket: UdpSocket,
    bytes: Vec<u8>,
}

/// What came of a stream.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Came {
    pub(super) bytes: u64,
    /// From the first to the last.
    pub(super) seconds: f64,
}

impl Udp {
    pub(super) fn bind(at: IpAddr) -> Result<Self> {
        let socket = UdpSocket::bind((at, 0)).context("binding a socket")?;
        socket.set_nonblocking(true)?;
        // A kernel that does not join gives one datagram a call.
        let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
        size_buffers(&socket).context("sizing the buffers")?;
        Ok(Self {
            socket,
            bytes: vec![0x5a; 1 << 16],
        })
    }

    pub(super) fn local(&self) -> Result<SocketAddr> {
        Ok(self.socket.local_addr()?)
    }

    pub(super) fn connect(&self, to: SocketAddr) -> Result<()> {
        Ok(self.socket.connect(to)?)
    }

    fn send(&self, bytes: &[u8]) -> Result<()> {
        loop {
            match self.socket.send(bytes) {
                Ok(_) => return Ok(()),
                Err(error) if is_passing(&error) => std::hint::spin_loop(),
                Err(error) => return Err(error).context("sending"),
            }
        }
    }

    /// Polls until something comes, but not for longer than that; how many bytes.
    fn take(&mut self, timeout: Duration) -> Result<Option<usize>> {
        let mut began = None;
        loop {
            for _ in 0..1_000 {
                match self.socket.recv(&mut self.bytes) {
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(error) if is_passing(&error) => std::hint::spin_loop(),
                    Err(error) => return Err(error).context("receiving"),
                }
            }
            if began.get_or_insert_with(Instant::now).elapsed() > timeout {
                return Ok(None);
            }
        }
    }

    fn take_answer(&mut self) -> Result<usize> {
        self.take(LOST_AFTER)?.context("a datagram was lost")
    }

    /// Nanoseconds one way, of so many round trips of 16 bytes.
    pub(super) fn lead(&mut self, round_trips: u64) -> Result<f64> {
        let began = Instant::now();
        for turn in 0..round_trips {
            let mut message = [0; SHORT_BYTES];
            message[..8].copy_from_slice(&turn.to_le_bytes());
            self.send(&message)?;
            let bytes = self.take_answer()?;
            if self.bytes[..bytes] != message {
                bail!("an answer to another message");
            }
        }
        Ok(began.elapsed().as_nanos() as f64 / round_trips as f64 / 2.0)
    }

    /// Answers so many.
    pub(super) fn echo(&mut self, round_trips: u64) -> Result<()> {
        for _ in 0..round_trips {
            let bytes = self.take_answer()?;
            self.send(&self.bytes[..bytes])?;
        }
        Ok(())
    }

    /// Sends so many bytes in the longest datagrams that the MTU allows.
    pub(super) fn pour(&mut self, bytes: u64, mtu_bytes: usize) -> Result<()> {
        let datagram_bytes = (mtu_bytes - HEADERS_BYTES).min(RUN_BYTES_MAX);
        let many = (RUN_BYTES_MAX / datagram_bytes).min(RUN_DATAGRAMS_MAX);
        let segments = setsockopt(
            &self.socket,
            sockopt::UdpGsoSegment,
            &(datagram_bytes as i32),
        );
        let run = if segments.is_ok() { many } else { 1 } * datagram_bytes;
        for _ in 0..bytes.div_ceil(run as u64) {
            self.send(&self.bytes[..run])?;
        }
        Ok(())
    }

    /// Takes a stream until it is over.
    pub(super) fn drain(&mut self) -> Result<Came> {
        let (mut came, mut first) = (0, None);
        let (mut last, mut timeout) = (Instant::now(), LOST_AFTER);
        while let Some(bytes) = self.take(timeout)? {
            came += bytes as u64;
            last = Instant::now();
            first.get_or_insert(last);
            timeout = OVER_AFTER;
        }
        let seconds = (last - first.context("nothing came")?).as_secs_f64();
        Ok(Came {
            bytes: came,
            seconds,
        })
    }

    /// Throws away what is left of before.
    pub(super) fn empty(&mut self) -> Result<()> {
        loop {
            match self.socket.recv(&mut self.bytes) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("receiving"),
            }
        }
    }
}

/// As far as the administrator may; or everybody.
fn size_buffers(socket: &UdpSocket) -> nix::Result<()> {
    setsockopt(socket, sockopt::SndBufForce, &BUFFER_BYTES)
        .or_else(|_| setsockopt(socket, sockopt::SndBuf, &BUFFER_BYTES))?;
    setsockopt(socket, sockopt::RcvBufForce, &BUFFER_BYTES)
        .or_else(|_| setsockopt(socket, sockopt::RcvBuf, &BUFFER_BYTES))
}

/// Whether it is to be tried again at once.
fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
        || error.raw_os_error() == Some(nix::errno::Errno::ENOBUFS as i32)
}
