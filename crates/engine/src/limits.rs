//! Every bound of the interface in one place, related to each other at
//! compile time.

/// Bytes of user metadata a message may carry (`Hamlyn 2.2, Table 2`).
pub const USER_METADATA_BYTES: usize = 60;
/// Size of a metadata entry (`Hamlyn 2.4`).
pub const METADATA_ENTRY_BYTES: usize = 128;
/// Metadata index of a packet that names no entry: fast mode (`Hamlyn 2.7`).
pub const FAST_INDEX: u16 = u16::MAX;
/// Entries a metadata area may have; the all-ones index names none of them.
pub const METADATA_ENTRIES_MAX: usize = FAST_INDEX as usize;
/// Slots an interface may have.
pub const SLOTS_MAX: usize = 1 << 15;
/// Ports an interface may have.
pub const PORTS_MAX: usize = 1 << 15;
/// Handlers a port may have: a message says the number of its own in 12 bits.
pub const HANDLERS_MAX: u16 = 1 << 12;
/// Bytes of the largest queue of a port.
pub const PORT_QUEUE_BYTES_MAX: u32 = 1 << 30;
/// Unit in which the queue of a port is counted: a message counts those that it begins, one at
/// least.
pub const PORT_QUEUE_UNIT_BYTES: u32 = 64;
/// Senders that a parked port remembers to have been refused.
pub const KNOCKS_MAX: usize = 64;
/// Messages a terminus queues before `try_send` says that it is full (`Hamlyn 2.3`).
pub const WORK_QUEUE_ENTRIES: usize = 63;
/// The largest work queue that may be asked for.
pub const WORK_QUEUE_ENTRIES_MAX: usize = 4095;
/// Bytes that a terminus keeps for each destination, of messages longer than [`DIRECT_BYTES_MAX`],
/// unless its options say something else.
pub const WORK_QUEUE_BYTES: usize = 16 << 20;
/// Send-buffer areas of a terminus, each with base and bound (`Hamlyn 2.3`), unless its options say
/// something else.
pub const SEND_AREAS: usize = 8;
/// The most send-buffer areas that may be asked for.
pub const SEND_AREAS_MAX: usize = 1024;
/// Pieces a gathered message may consist of.
pub const GATHER_PIECES_MAX: usize = 1024;
/// Pieces that a work-queue entry, or the list of parts of a packet, holds itself; for more memory
/// is allocated.
pub const GATHER_PIECES_HELD: usize = 8;
/// Bytes of data that a work-queue entry holds itself (direct I/O, `Hamlyn 2.3`);
/// longer messages are pulled from a send-buffer area or a slice of the caller.
pub const DIRECT_BYTES_MAX: usize = 128;
/// Most bytes of data in a short packet, which takes the fast path, beside its word of metadata;
/// and without one.
pub const SHORT_BYTES_WITH_WORD: usize = 24;
/// See [`SHORT_BYTES_WITH_WORD`].
pub const SHORT_BYTES_MAX: usize = 8 * SHORT_WORDS;
/// The same in words.
pub const SHORT_WORDS: usize = 4;
/// Most bytes of data in a message that is offered in several cells of a link, where a link has
/// them.
pub const CELLS_BYTES_MAX: usize = 1024;
/// Words of data that lie together beyond those of a short packet ([`ShortSource::more`]).
///
/// [`ShortSource::more`]: crate::memory::ShortSource::more
pub const MORE_WORDS: usize = 7;
/// Packets of a streaming send that are sent before the caller may look at what came in: on
/// Ethernet as many as one call of the system takes, and a few.
pub const STREAMING_BURST: usize = 48;
/// Packets of queued messages that are sent to one link before the next link has its turn.
pub const BACKLOG_BURST: usize = 16;
/// Links without room that are asked one after the other for room in a pump.
pub const BACKLOGS_BLOCKED_MAX: usize = 8;
/// Pumps after which a link is offered a packet though nothing says that it has room again.
pub const PUMPS_PER_TRIAL: u32 = 64;
/// Smallest payload limit a link may have.
pub const PACKET_PAYLOAD_MIN: usize = 64;
/// Largest payload limit a link may have.
pub const PACKET_PAYLOAD_MAX: usize = 64 * 1024;
/// Termini of one interface.
pub const TERMINI_MAX: usize = 256;
/// Notification queues of one interface.
pub const QUEUES_MAX: usize = 1 << 15;
/// Entries of the largest notification queue.
pub const NOTIFICATION_ENTRIES_MAX: usize = 1 << 20;
/// Grants that a slot may have at a time.
pub const GRANTS_PER_SLOT_MAX: usize = 16;
/// Longest message: its packets must be countable by one 32-bit share even on
/// the link with the smallest packets.
pub const MESSAGE_BYTES_MAX: u64 = 1 << 37;
/// Frames of an association that may be without acknowledgement at a time.
pub const CHANNELS_MAX: usize = 4096;
/// Channels that an association opens at first; twice as many each time that all of them are in
/// use.
pub const CHANNELS_OPEN_FIRST: u16 = 128;
/// Flows that the frames of an association are sprayed over.
pub const PATHS_MAX: usize = 16;
/// Bytes that the carrier of an association may write before and behind a frame where it is kept.
pub const CARRIER_HEAD_BYTES: usize = 16;
/// See [`CARRIER_HEAD_BYTES`].
pub const CARRIER_TAIL_BYTES: usize = 16;
/// Smallest frame that an association may be told to make do with.
pub const FRAME_BYTES_MIN: usize = 256;
/// Largest frame: a UDP datagram's 65,507 bytes, less 32 for the wire's own.
pub const FRAME_BYTES_MAX: usize = 65_475;

const _: () = {
    // The first packet of a message carries all of its metadata.
    assert!(USER_METADATA_BYTES <= PACKET_PAYLOAD_MIN);
    assert!(CELLS_BYTES_MAX > SHORT_BYTES_MAX && CELLS_BYTES_MAX < 1 << 16);
    // Short data and a word of metadata fit the smallest packet.
    assert!(SHORT_BYTES_WITH_WORD + 8 == SHORT_BYTES_MAX);
    assert!(SHORT_BYTES_MAX + 8 <= PACKET_PAYLOAD_MIN && SHORT_BYTES_MAX <= DIRECT_BYTES_MAX);
    // A slot name has 16 bits of index.
    assert!(SLOTS_MAX <= 1 << 16 && SLOTS_MAX.is_power_of_two());
    assert!(PORTS_MAX <= 1 << 16 && PORTS_MAX.is_power_of_two());
    assert!(PORT_QUEUE_BYTES_MAX.is_multiple_of(PORT_QUEUE_UNIT_BYTES));
    // A message on the link with the smallest packets stays below one share of 2^32
    // packets; its first packet may hold as few as 4 bytes of data.
    assert!(MESSAGE_BYTES_MAX / PACKET_PAYLOAD_MIN as u64 + 1 < 1 << 32);
    // A message that fits the work queue is sent in one burst.
    assert!(
        (DIRECT_BYTES_MAX + USER_METADATA_BYTES).div_ceil(PACKET_PAYLOAD_MIN) < STREAMING_BURST
    );
    // All ones is no channel, and what a frame holds is counted in 16 bits.
    assert!(CHANNELS_MAX <= 1 << 15 && FRAME_BYTES_MAX < 1 << 16);
    assert!(CHANNELS_OPEN_FIRST > 0 && CHANNELS_OPEN_FIRST as usize <= CHANNELS_MAX);
    // The smallest packet fits the smallest frame, with 75 bytes or less of the frame's and its own
    // headers.
    assert!(PACKET_PAYLOAD_MIN + 75 <= FRAME_BYTES_MIN);
    // A gathered message may take every one of its pieces from another area.
    assert!(GATHER_PIECES_MAX >= SEND_AREAS_MAX && SEND_AREAS_MAX <= 1 << 16);
    assert!(GATHER_PIECES_HELD <= u8::MAX as usize);
};
