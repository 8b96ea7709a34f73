//! The link between two processes of a host: one ring in each direction.
//!
//! Each side makes the memory that it receives in; the other writes there. The
//! peer is trusted in nothing (ARCHITECTURE.md, trust): what it writes is checked by the ring
//! and by [`crate::cell::decode`], and the first thing that no correct peer does ends this
//! end, whose owner ends the other; and only this link.

mod doorbell;
mod receive;
mod transmit;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hamlyn_ring::cells::{Laid, SharedLine};
use hamlyn_ring::doorbell::{Attention, Fence, Waker};
use hamlyn_ring::duplex::LineOrder;
use hamlyn_ring::forks::Uninherited;
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::overflow::{LogGeometry, LogOptions};
use hamlyn_ring::ready_bitmap::{READY_BITS_MAX, ReadyMarker, SharedBitmap};
use hamlyn_ring::shared::{Access, Mapping, OutOfRange};
use hamlyn_ring::wake::WakeWord;

use crate::carrier::{Incoming, LinePart, Outgoing, check_payload_max};
use crate::{Link, LinkError};

use doorbell::{Doorbell, Notifier};
pub use receive::PairReceive;
pub use transmit::PairTransmit;

/// Payload limit of a link that was not told otherwise.
pub const PAYLOAD_MAX_DEFAULT_BYTES: usize = 64 << 10;

/// What a link is made of.
pub struct PairParts {
    /// Our memory, in which the peer writes.
    pub receive: Mapping,
    /// Its layout.
    pub receive_geometry: Geometry,
    /// The peer's memory, in which we write.
    pub send: Mapping,
    /// The file of the peer's memory: more of its payload arena is reserved when it is needed.
    pub send_file: OwnedFd,
    /// Its layout.
    pub send_geometry: Geometry,
    /// The overflow log of our memory, into which the peer goes on, if there is one.
    pub receive_log: Option<(Mapping, LogGeometry)>,
    /// That of the peer's memory.
    pub send_log: Option<(Mapping, LogOptions)>,
    /// When this end writes the duplex line, which lies in the memory of the end that does so
    /// first.
    pub order: LineOrder,
    /// The ready bitmap of the peer.
    pub peer_bitmap: Mapping,
    /// The bit there that this end sets.
    pub bit_at_peer: u32,
    /// The bit that the peer sets in our ready bitmap.
    pub ready_bit: u32,
    /// Dropped with the receiving end: gives back that bit, and its part of what logs may take.
    pub lease: Option<Box<dyn Send>>,
    /// Who pays for the barrier of the sleep protocol.
    pub fence: Fence,
    /// A socket to the peer: a byte in it wakes a peer that does not wait at its word.
    pub doorbell: Uninherited,
    /// Largest payload of a packet, in either direction. The peer's memory must have
    /// [`Geometry::reserved`] for it.
    pub payload_max_bytes: usize,
}

/// A link to another process of this host, to another interface of this one, or
/// ([`PairLink::to_itself`]) to the same interface.
pub struct PairLink {
    /// What goes out.
    pub transmit: PairTransmit,
    /// What comes in.
    pub receive: PairReceive,
}

impl PairLink {
    /// A link over unused memory.
    pub fn new(parts: PairParts) -> Result<Self, LinkError> {
        let payload_max = parts.payload_max_bytes;
        check_payload_max(payload_max)?;
        let send = Arc::new(parts.send);
        let marker = ReadyMarker::new(
            SharedBitmap::new(Arc::new(parts.peer_bitmap))?,
            parts.bit_at_peer,
        );
        let waker = Waker::new(Arc::clone(&send), parts.send_geometry, parts.fence, marker)?;
        let file = Some(parts.send_file);
        let word = WakeWord::new(Arc::clone(&send), parts.send_geometry)?;
        let receive = Arc::new(parts.receive);
        let receives = (&receive, parts.receive_geometry);
        let sends = (&send, parts.send_geometry);
        let line_in = if parts.order == LineOrder::First {
            receives
        } else {
            sends
        };
        let [line_out, line] = line_parts(line_in, sends, receives, parts.order)?;
        let outgoing = Outgoing::new(
            Arc::clone(&send),
            parts.send_geometry,
            payload_max,
            file,
            line_out,
            parts
                .send_log
                .map(|(log, options)| (Arc::new(log), options)),
        )?;
        let attention = Attention::new(Arc::clone(&receive), parts.receive_geometry)?;
        let wake_word = WakeWord::new(Arc::clone(&receive), parts.receive_geometry)?;
        let log = parts.receive_log;
        let log = log.map(|(log, geometry)| (Arc::new(log), geometry));
        let incoming = Incoming::new(receive, parts.receive_geometry, payload_max, line, log)?;
        let doorbell = Arc::new(Doorbell::new(word, Notifier::Socket(parts.doorbell)));
        Ok(Self {
            transmit: PairTransmit {
                outgoing,
                waker,
                doorbell: Arc::clone(&doorbell),
            },
            receive: PairReceive {
                incoming,
                attention,
                wake_word,
                doorbell,
                ready_bit: parts.ready_bit,
                _lease: parts.lease,
                fault: None,
            },
        })
    }

    /// A link over new memory whose other end is the same interface. `event_fd` is an eventfd that
    /// ends the sleep of the thread that drives it, which need not be the sending thread, unless it
    /// waits at the link's word.
    pub fn to_itself(
        geometry: Geometry,
        payload_max_bytes: usize,
        fence: Fence,
        event_fd: OwnedFd,
    ) -> Result<Self, LinkError> {
        check_payload_max(payload_max_bytes)?;
        // A memory file, so that what is seldom needed is reserved when it is.
        let file = Memfd::create_ring("hamlyn-loopback", geometry, payload_max_bytes)?;
        let mapping = Arc::new(file.map(Access::Writable)?);
        let file = Some(file.into_fd());
        let wake_word = WakeWord::new(Arc::clone(&mapping), geometry)?;
        let doorbell = Arc::new(Doorbell::new(
            wake_word.clone(),
            Notifier::EventFd(event_fd),
        ));
        let pad = ReadyMarker::none();
        // One who answers itself has every line at hand.
        let laid = (&mapping, geometry);
        let [line_out, line] = line_parts(laid, laid, laid, LineOrder::Never)?;
        Ok(Self {
            transmit: PairTransmit {
                outgoing: Outgoing::new(
                    Arc::clone(&mapping),
                    geometry,
                    payload_max_bytes,
                    file,
                    line_out,
                    // One who sends to itself takes what it sent, or nobody does.
                    None,
                )?,
                waker: Waker::new(Arc::clone(&mapping), geometry, fence, pad)?,
                doorbell: Arc::clone(&doorbell),
            },
            receive: PairReceive {
                attention: Attention::new(Arc::clone(&mapping), geometry)?,
                wake_word,
                incoming: Incoming::new(mapping, geometry, payload_max_bytes, line, None)?,
                doorbell,
                ready_bit: READY_BITS_MAX,
                _lease: None,
                fault: None,
            },
        })
    }
}

/// The duplex line of an end, which lies in the first memory, for its two directions.
fn line_parts(
    line_in: Laid<'_>,
    sends: Laid<'_>,
    receives: Laid<'_>,
    order: LineOrder,
) -> Result<[LinePart; 2], OutOfRange> {
    let taken = Arc::<AtomicU64>::default();
    let part = |direction| {
        let line = SharedLine::new(line_in, direction)?;
        let taken = Arc::clone(&taken);
        Ok(LinePart { line, order, taken })
    };
    Ok([part(sends)?, part(receives)?])
}

impl Link for PairLink {
    type Transmit = PairTransmit;
    type Receive = PairReceive;

    fn split(self) -> (PairTransmit, PairReceive) {
        (self.transmit, self.receive)
    }
}

#[cfg(test)]
mod cells_tests;
#[cfg(test)]
mod fence_tests;
#[cfg(test)]
mod line_tests;
#[cfg(test)]
mod loopback_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod overflow_tests;
#[cfg(test)]
mod tests;
