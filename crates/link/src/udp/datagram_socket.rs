//! A [`DatagramSocket`]: what an endpoint and its connections ask of UDP sockets.
//!
//! The product has one, [`Socket`]; a simulation has another, over a network of its own (decision
//! 0033). The type is a parameter, so the calls of the product are resolved when it is compiled.
//! Nothing here blocks, and nothing of a socket allocates once it is made.

use hamlyn_engine::point::Point;
use std::io::IoSlice;
use std::net::SocketAddr;

use hamlyn_engine::transport::{CloseReason, Returned};

use super::batch::{Batch, Inbox};
use super::socket::{CallFailed, SendError, Socket, SocketSettings};

/// What a connection does, for a simulation that checks it.
#[derive(Clone, Copy, Debug)]
pub enum ConnectionStep<'a> {
    /// It gives a frame to its sockets; in the clear.
    Sent {
        /// By which socket.
        path: u8,
        /// The frame.
        frame: &'a [u8],
    },
    /// A frame has come undamaged; in the clear.
    Came(&'a [u8]),
    /// It queues the packets of a frame that came for its interface.
    Queued {
        /// The channel of the frame.
        channel: u16,
        /// The number of the frame in its channel.
        sequence: u32,
    },
    /// Its association has ended; told more than once.
    Ended(CloseReason),
    /// A packet comes back.
    Returned(Returned<'a>),
}

/// See the module. [`Socket`] says what each call means.
pub trait DatagramSocket: Send + Sized + 'static {
    /// See [`Socket::local`].
    fn local(&self) -> SocketAddr;

    /// See [`Socket::peer`].
    fn peer(&self) -> Option<SocketAddr>;

    /// See [`Socket::beside`].
    fn beside(
        &self,
        peer: SocketAddr,
        settings: &SocketSettings,
    ) -> Result<Option<Self>, CallFailed>;

    /// See [`Socket::expect`].
    fn expect(&mut self, single_bytes_max: usize);

    /// See [`Socket::cut`].
    fn cut(&mut self, is_allowed: bool) -> Result<(), CallFailed>;

    /// See [`Socket::send`].
    fn send(&mut self, batch: &mut Batch) -> Result<usize, SendError>;

    /// See [`Socket::send_gathered`].
    fn send_gathered(
        &mut self,
        datagrams: &[IoSlice<'_>],
        segment_bytes: u16,
    ) -> Result<bool, SendError>;

    /// See [`Socket::send_one`].
    fn send_one(&mut self, datagram: &[u8]) -> Result<(), SendError>;

    /// See [`Socket::send_to`].
    fn send_to(&mut self, datagram: &[u8], to: SocketAddr) -> Result<(), SendError>;

    /// See [`Socket::receive`].
    fn receive(&self, inbox: &mut Inbox) -> Result<bool, CallFailed>;

    /// See [`Socket::receive_stamped`].
    #[inline]
    fn receive_stamped(&self, inbox: &mut Inbox) -> Result<bool, CallFailed> {
        self.receive(inbox)
    }

    /// The endpoint passes that point of the transport's work. Sockets that do not listen do
    /// nothing.
    #[inline(always)]
    fn passes(_: Point) {}

    /// See [`Socket::next_report`].
    fn next_report(&self) -> Option<Option<SocketAddr>>;

    /// See [`Socket::put_off_reports`].
    fn put_off_reports(&self);

    /// The connection of that number, at the endpoint that is being used, does that. The product
    /// has no listener, and never calls `step`.
    #[inline]
    fn observe<'a>(number: u32, step: impl FnOnce() -> ConnectionStep<'a>) {
        let _ = (number, step);
    }
}

impl DatagramSocket for Socket {
    fn local(&self) -> SocketAddr {
        self.local()
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.peer()
    }

    fn beside(
        &self,
        peer: SocketAddr,
        settings: &SocketSettings,
    ) -> Result<Option<Self>, CallFailed> {
        self.beside(peer, settings)
    }

    fn expect(&mut self, single_bytes_max: usize) {
        self.expect(single_bytes_max);
    }

    fn cut(&mut self, is_allowed: bool) -> Result<(), CallFailed> {
        self.cut(is_allowed)
    }

    #[inline]
    fn send(&mut self, batch: &mut Batch) -> Result<usize, SendError> {
        self.send(batch)
    }

    #[inline]
    fn send_gathered(
        &mut self,
        datagrams: &[IoSlice<'_>],
        segment_bytes: u16,
    ) -> Result<bool, SendError> {
        self.send_gathered(datagrams, segment_bytes)
    }

    #[inline]
    fn send_one(&mut self, datagram: &[u8]) -> Result<(), SendError> {
        self.send_one(datagram)
    }

    fn send_to(&mut self, datagram: &[u8], to: SocketAddr) -> Result<(), SendError> {
        self.send_to(datagram, to)
    }

    #[inline]
    fn receive(&self, inbox: &mut Inbox) -> Result<bool, CallFailed> {
        self.receive(inbox)
    }

    #[inline]
    fn receive_stamped(&self, inbox: &mut Inbox) -> Result<bool, CallFailed> {
        self.receive_stamped(inbox)
    }

    fn next_report(&self) -> Option<Option<SocketAddr>> {
        self.next_report()
    }

    fn put_off_reports(&self) {
        self.put_off_reports();
    }
}
