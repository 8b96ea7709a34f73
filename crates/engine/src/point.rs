//! Points: the steps in the work of an interface that take time on a machine, told to a listener as
//! they are passed.
//!
//! The engine passes a point beside each access that it makes for a packet, so what a listener
//! counts follows from the code: one more access is one more point. A payload and the links of a
//! transmitting half listen ([`Payload::passes`](crate::memory::Payload::passes),
//! [`TxLinks::passes`](crate::memory::TxLinks::passes)); both do nothing unless they are written
//! to, and then nothing of it is in the compiled program. The simulator's machines charge time for
//! points.
//!
//! A point says what was done, not what it costs, and not where. Work on a packet that a link then
//! does not take, and on a message that a full queue then refuses, has been done all the same. A
//! link's own fast path for short packets
//! ([`TxLinks::offer_short`](crate::memory::TxLinks::offer_short)) passes their points itself.
//!
//! Those of the transport are passed by the endpoint that sends its frames. The last ones are
//! passed by those who drive the engine, between an application and its interface.

/// A step in the work of an interface. Bytes are those of the packet or message at hand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Point {
    /// The application put a message into the work queue: its header, so many pieces of a gather
    /// list, and so many bytes of data that it wrote itself (direct I/O).
    RequestWritten {
        /// Pieces of the gather list.
        pieces: u32,
        /// Bytes of data in the request.
        data_bytes: u32,
    },
    /// The interface has read a request: once for each message.
    RequestRead,
    /// It has cut a packet.
    PacketCut,
    /// It has fetched the packet's metadata out of the sender's memory.
    MetadataFetched(u32),
    /// It has fetched the packet's data out of the sender's memory.
    DataFetched(u32),
    /// The last packet of a message is out: its buffers are the application's again.
    MessageOut,
    /// The interface has read the header of a packet that came.
    HeaderRead,
    /// It has read the slot that the header names.
    SlotRead,
    /// It has compared the packet's key.
    KeyChecked,
    /// It has read the metadata entry that the header names.
    EntryRead,
    /// It has read what a paranoid entry permits.
    PermissionRead,
    /// It has put the packet's data into their place.
    Deposited(u32),
    /// It has put the packet's metadata into its entry.
    MetadataStored(u32),
    /// It has read a packet accumulator.
    AccumulatorRead,
    /// It has written a packet accumulator.
    AccumulatorWritten,
    /// It has announced a message.
    Notified,
    /// It has announced a packet of a slot that has no entries to look up, such as the answer to a
    /// one-sided operation; the fast path does not tell the two apart.
    Signalled,
    /// It has carried out a request to read so many bytes.
    ReadServed(u32),
    /// It has carried out a request to put so many bytes.
    PutServed(u32),
    /// It has carried out a request to change a word.
    ChangeServed,
    /// It has sent a packet of an answer that brings data.
    Answered,
    /// It has refused a packet.
    Refused,
    /// The transport has made a frame that only answers the peer: frames with packets take answers
    /// along.
    AnswerMade,
    /// The transport has set the time at which it wants to be looked after.
    TimerSet,
    /// The application has begun a one-sided operation that reads.
    ReadBegun,
    /// The application has begun a one-sided operation that puts.
    PutBegun,
    /// The application has begun a one-sided operation that changes a word.
    ChangeBegun,
    /// The request of a one-sided operation goes to its link.
    Asked,
    /// The request has gone.
    RequestOut,
    /// The application has the receiving half, which it shares with its network processor, in order
    /// to look.
    HalfTaken,
    /// The application has left a request to another processor, which is to send it.
    HandedOver,
    /// The application has taken a message that was announced.
    Taken,
    /// It has looked for something that has not come.
    Looked,
    /// It slept, and goes on.
    Woken,
    /// A step for a message to a port.
    Port(PortPoint),
    /// A step of user direct messaging, which a layer passes.
    Udm(UdmPoint),
}

/// A step for a port, or for a message to it: after [`Point::HeaderRead`], and before
/// [`Point::Deposited`] or [`Point::Refused`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PortPoint {
    /// The interface has read the port that the header names.
    PortRead,
    /// It has compared the packet's key.
    KeyChecked,
    /// It has announced the message: put it into the port's queue.
    Notified,
    /// The application has taken the message.
    Taken,
    /// The application has parked the port.
    Parked,
    /// It has ended that.
    Resumed,
}

/// A step of user direct messaging (T 3, T 4.1). The layer passes it, in the thread of the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UdmPoint {
    /// The program has injected a message: it is committed, and the words are the program's again.
    Injected,
    /// A message has interrupted the program: what follows is the message's handler.
    Upcall,
    /// A handler begins, in an atomic section. It may have been called by a poll.
    HandlerBegun,
    /// It has returned.
    HandlerEnded,
    /// A message was disposed of: the next one shows.
    Disposed,
    /// An atomic section begins.
    AtomBegun,
    /// It ends.
    AtomEnded,
}
