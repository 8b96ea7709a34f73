//! The stream protocol (`Hamlyn 3.3`): records, one way, from one sender to one
//! receiver, in order, without a copy at the receiver.
//!
//! The receiver's memory is an *extent*: pieces of equal size, a one-shot
//! metadata entry for each. The sender fills pieces in order, so it knows every ticket it will
//! ever use, and all that comes back is a count of pieces released. A record
//! that is longer than a piece takes several that lie side by side; several small ones may share a piece.
//! When the receiver holds on to all pieces, or a record is longer than the
//! extent, the stream moves to a larger extent, up to the receiver's limit.
//!
//! What the sender writes is hostile to the receiver and the other way round: positions, kinds
//! and lengths are checked, and whoever breaks the protocol breaks only this stream.

mod control;
mod extent;
mod options;
mod receiver;
mod sender;
mod wire;

use hamlyn_engine::slot::SlotInfo;
use hamlyn_host::process::ProcessHost;
use hamlyn_host::{Destination, Host};

use crate::error::{FenceError, GrowError, OpenError, ReceiveError, SendError};
use crate::manager::{Holder, Manager};
use crate::wait::Wait;

pub use options::StreamOptions;
pub use receiver::Record;
pub use wire::{SEED_BYTES, StreamSeed};

/// The receiving end. See the module.
#[derive(Debug)]
pub struct Receiver<H: Host = ProcessHost> {
    end: receiver::Receiver,
    manager: Holder<H>,
}

impl<H: Host> Receiver<H> {
    /// Opens the receiving end, with all the memory it starts with.
    pub fn new(manager: &Manager<H>, options: StreamOptions) -> Result<Self, OpenError> {
        Ok(Self {
            end: receiver::Receiver::new(&mut manager.enter(), options)?,
            manager: manager.hold(),
        })
    }

    /// What the sending end grows from (`Hamlyn 3.3`). For one sender.
    pub fn make_seed(&self) -> StreamSeed {
        self.end.make_seed(&self.manager.enter())
    }

    /// The next record. Nothing if none came in time. [`ReceiveError::Closed`] when the
    /// sender has closed and all is received, and [`ReceiveError::PeerLost`] when the sender is gone. Before it
    /// has presented itself nobody is bound to the stream; who was lost then, tells [`crate::Interface::next_loss`].
    #[inline(always)]
    pub fn receive(&mut self, wait: Wait) -> Result<Option<Record>, ReceiveError> {
        self.end.receive(&mut self.manager.enter(), wait)
    }

    /// The bytes of a record. Nothing if it was released.
    #[inline]
    pub fn bytes(&self, record: &Record) -> Option<&[u8]> {
        self.end.bytes(record)
    }

    /// Gives back the memory of that record and of all that were received before it.
    #[inline(always)]
    pub fn release(&mut self, record: &Record) {
        if !self.end.release_at_once(record) {
            self.end.release_slowly(&mut self.manager.enter(), record);
        }
    }

    /// The sender's end of the connection, once it has presented itself.
    pub fn sender(&self) -> Option<Destination> {
        self.end.sender()
    }

    /// Bytes of memory that the stream has at present.
    pub fn memory_bytes(&self) -> u64 {
        self.end.memory_bytes()
    }

    /// Packets refused at this stream's present memory, by reason, and more.
    pub fn info(&self) -> Result<Option<SlotInfo>, OpenError> {
        self.end.info(&self.manager.enter())
    }
}

/// The sending end. See the module.
#[derive(Debug)]
pub struct Sender<H: Host = ProcessHost> {
    end: sender::Sender,
    manager: Holder<H>,
}

impl<H: Host> Sender<H> {
    /// Grows the sending end from a seed; connects if need be, and presents itself.
    pub fn grow(manager: &Manager<H>, seed: &StreamSeed, wait: Wait) -> Result<Self, GrowError> {
        Ok(Self {
            end: sender::Sender::grow(&mut manager.enter(), seed, wait)?,
            manager: manager.hold(),
        })
    }

    /// Sends a record of any length up to the receiver's limit. Large ones go out of `data`
    /// itself and the call lasts until they are handed over; small ones may be held back to share a
    /// piece when the receiver is behind, until [`Sender::flush`] or a later send. With
    /// [`Wait::Poll`] it never blocks: what cannot go at once is copied, and
    /// if not even that is possible, nothing is sent. So it is with what is left of a record of which a part was sent
    /// when the wait was over: it is copied and goes later, as the link has room.
    #[inline(always)]
    pub fn send(&mut self, data: &[u8], wait: Wait) -> Result<(), SendError> {
        self.end.send(&mut self.manager.enter(), data, wait)
    }

    /// Sends what was held back.
    pub fn flush(&mut self, wait: Wait) -> Result<(), SendError> {
        self.end.flush(&mut self.manager.enter(), wait)
    }

    /// Sends what was held back, and waits until every record that was accepted is in its place at the receiver's interface,
    /// whether its program has taken it or not; or says what was refused since the fence before. Blocks for as long as `wait`
    /// says. See [`crate::Interface::fence`].
    pub fn fence(&mut self, wait: Wait) -> Result<(), FenceError> {
        self.end.fence(&mut self.manager.enter(), wait)
    }

    /// Flushes and closes. The receiver learns of it after the last record. When the call returns,
    /// all is handed over, so the program may end. With [`SendError::WouldBlock`] nothing that was accepted is lost, and
    /// the call may be repeated; with any other error the sender is closed as well. One that is dropped before it is closed
    /// sends nothing more, and its receiver is told whether that was all.
    pub fn close(&mut self, wait: Wait) -> Result<(), SendError> {
        self.end.close(&mut self.manager.enter(), wait)
    }

    /// The receiver's end of the connection.
    pub fn receiver(&self) -> Destination {
        self.end.receiver()
    }

    /// Pieces that could be filled now.
    pub fn pieces_free(&self) -> u64 {
        self.end.pieces_free()
    }
}
